#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "cli/arrays/elements.h"
#include "cli/arrays/elision.h"
#include "cli/system/signals.h"
#include "cli/system/terminal.h"
#include "cli/verbs/table_rotation.h"
#include "posenc/apply.h"

namespace posenc::cli {
namespace {

using Cells = std::vector<std::string>;

// More pairs than fit on any screen.
bool is_out_of_sight(std::int64_t pair, std::int64_t pairs) {
  return pair >= kWidestScreen && pair < pairs - kWidestScreen;
}

// The rows that are shown, one per position, and the ends of each.
struct Halves {
  std::vector<Cells> cosines, sines;
};

Halves halves_of(const RotationTableJob& job, const Shown& rows, int digits) {
  const std::int64_t pairs = job.pairs();
  std::array<std::vector<std::byte>, 2> bytes;
  for (auto& half : bytes) half.resize(pairs * size_of(job.type));
  std::vector<std::int64_t> scratch;
  Halves halves;
  for (const std::int64_t row : rows.indices()) {
    stop_if_signalled();
    tabulate({bytes[0].data(), job.type, {1, pairs}}, {bytes[1].data(), job.type, {1, pairs}},
             slice(job.positions, row, 1, scratch), job.form);
    Cells cosines, sines;
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      if (is_out_of_sight(pair, pairs)) continue;
      cosines.push_back(rounded(element_at(bytes[0].data(), job.type, pair), digits));
      sines.push_back(rounded(element_at(bytes[1].data(), job.type, pair), digits));
    }
    halves.cosines.push_back(std::move(cosines));
    halves.sines.push_back(std::move(sines));
  }
  return halves;
}

// The wavelength in positions: 6.28, 62.8, 628, 6283.
std::string wavelength_of(double frequency) {
  if (frequency == 0) return "∞";
  const double length = 2 * std::numbers::pi / std::fabs(frequency);
  return length < 999.5 ? fmt::format("{:.3g}", length)
         : length < 1e9 ? fmt::format("{:.0f}", length)
                        : fmt::format("{:.2e}", length);
}

// A line about the pairs: one value for each.
struct PairLine {
  std::string label;
  Cells cells = {};
};

std::vector<PairLine> spectrum_of(const RotationTableJob& job, int digits) {
  if (std::holds_alternative<Mixture>(job.form.source)) return {};  // a pair has no single frequency
  const std::vector<double> radians = frequencies_of(job.form);
  const bool sums_axes = std::holds_alternative<HeadWaves>(job.form.source);
  const std::size_t axes = sums_axes ? static_cast<std::size_t>(job.form.position_axes) : 1;
  std::vector<PairLine> lines;
  if (!pair_waves_of(job.form).axes.empty()) {
    lines.push_back({"axis"});
    for (std::size_t i = 0; i < radians.size(); ++i) {
      if (is_out_of_sight(static_cast<std::int64_t>(i), job.pairs())) continue;
      lines.back().cells.push_back(std::to_string(axis_of(job.form, i)));
    }
  }
  for (std::size_t axis = 0; axis < axes; ++axis) {
    PairLine frequency{axes == 1 ? "frequency" : fmt::format("axis {}", axis)}, wavelength{"wavelength"};
    for (std::size_t i = 0; i < radians.size() / axes; ++i) {
      if (is_out_of_sight(static_cast<std::int64_t>(i), job.pairs())) continue;
      frequency.cells.push_back(fmt::format("{:.{}g}", radians[i * axes + axis], std::max(digits, 3)));
      wavelength.cells.push_back(wavelength_of(radians[i * axes + axis]));
    }
    lines.push_back(std::move(frequency));
    if (axes == 1) lines.push_back(std::move(wavelength));
  }
  return lines;
}

std::string about_pairs(const RotationTableJob& job) {
  const Rotation& form = job.form;
  const std::string pairs = fmt::format("{} pair{}", job.pairs(), job.pairs() == 1 ? "" : "s");
  if (const auto* const mixture = std::get_if<Mixture>(&form.source)) {
    return fmt::format(
        "{}. The first {} are weighted sums of {} waves; the others have the same cosine and sine at every "
        "position.",
        pairs, mixture->mixed, form.frequencies.size());
  }
  if (std::holds_alternative<HeadWaves>(form.source)) {
    return pairs + ". Every axis of the position rotates every pair: its radians per position.";
  }
  return pairs + ". Frequency in radians per position, wavelength in positions" +
         (pair_waves_of(form).axes.empty() ? "." : "; each pair uses one axis of the position.");
}

std::string caption(const RotationTableJob& job, int columns) {
  std::string text = about_pairs(job);
  if (job.form.magnitude != 1) {
    text += fmt::format("\nCosines and sines include the magnitude, {:.6g}.", job.form.magnitude);
  }
  if (job.form.softmax_factor != 1) {
    text += fmt::format("\nAttention multiplies its scale by the softmax factor, {:.6g}.", job.form.softmax_factor);
  }
  return fmt::format("{}\n\n", fmt::join(wrap(text, columns), "\n"));
}

}  // namespace

std::string rotation_table_text(const RotationTableJob& job, int digits, int columns, bool colour) {
  const Shown rows = shown_rows(job.positions.count);
  Cells labels;
  for (const std::int64_t row : rows.indices()) labels.push_back(position_label(job.positions, row));
  const Halves halves = halves_of(job, rows, digits);
  const std::vector<PairLine> spectrum = spectrum_of(job, digits);

  int cell_columns = columns_of(std::to_string(job.pairs() - 1));
  for (const auto* const half : {&halves.cosines, &halves.sines}) {
    for (const Cells& line : *half) cell_columns = widest(line, cell_columns);
  }
  const int label_columns = widest(labels, columns_of("wavelength"));
  const int room = std::min(columns, kWidestScreen) - label_columns;
  // wide frequencies must not widen the columns if they are omitted anyway
  Shown shown = shown_columns(job.pairs(), room, cell_columns + kColumnGap);
  for (const PairLine& line : spectrum) cell_columns = widest(ends_of(line.cells, shown), cell_columns);
  shown = shown_columns(job.pairs(), room, cell_columns + kColumnGap);

  std::string text = caption(job, columns);
  const auto add_line = [&](std::string_view label, const Cells& cells) {
    text += line_of(label, label_columns, cells, cell_columns, shown) + "\n";
  };
  Cells numbers;
  for (const std::int64_t pair : shown.indices()) numbers.push_back(std::to_string(pair));
  const auto add_header = [&](std::string_view label) {
    text += dim(line_of(label, label_columns, numbers, cell_columns, shown), colour) + "\n";
  };
  add_header("pair");
  for (const PairLine& line : spectrum) add_line(line.label, ends_of(line.cells, shown));
  const auto add_half = [&](std::string_view name, const std::vector<Cells>& lines) {
    text += "\n";
    add_header(name);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!rows.is_whole() && static_cast<std::int64_t>(i) == rows.head) text += line_left_out(label_columns) + "\n";
      add_line(labels[i], ends_of(lines[i], shown));
    }
  };
  add_half("cosine", halves.cosines);
  add_half("sine", halves.sines);
  return text;
}

}  // namespace posenc::cli
