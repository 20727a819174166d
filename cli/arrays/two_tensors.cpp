#include "cli/arrays/two_tensors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "cli/arrays/elements.h"
#include "cli/arrays/input_array.h"
#include "cli/flags/positions_argument.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "posenc/scheme.h"
#include "posenc/schemes/choice.h"

namespace posenc::cli {
namespace {

NpyArray load(const std::string& path, const std::string& dtype) {
  const bool may_be_bf16 = dtype.empty() || dtype == "bf16";
  const InputArray input(path, NpyOptions{.void2_is_bf16 = dtype == "bf16", .uint16_is_bf16 = may_be_bf16});
  if (input.type() == DataType::kI64) refuse(fmt::format("{} contains integers, not vectors", path));
  if (dtype.empty() && input.type() == DataType::kBF16) {
    for (const std::string& note : input.notes()) tell(fmt::format("note: {}: {}", path, note));
  }
  if (!dtype.empty() && float_type_from(dtype) != input.type()) {
    refuse(fmt::format("{} contains {}, but --dtype is {}", path, name_of(input.type()), dtype));
  }
  return load_array(input);
}

// bshd and shd have the sequence before the heads.
ConstTensorView with_sequence_last(const NpyArray& array, const std::string& axes, const std::string& path) {
  const ConstTensorView plain = array.view();
  if (axes.empty()) return plain;
  for (const std::string_view known : {"sd", "hsd", "bsd", "bhsd", "shd", "bshd"}) {
    if (known != axes) continue;
    if (std::ssize(axes) != plain.shape.rank) {
      refuse(fmt::format("{} is {}, but --axes says {}", path, to_string(plain.shape), axes));
    }
    const int rank = plain.shape.rank;
    return axes.ends_with("shd") ? swap_axes(plain, rank - 3, rank - 2) : plain;
  }
  refuse(fmt::format("--axes: '{}' is not one of sd, hsd, shd, bsd, bhsd, bshd", axes));
}

std::string scaling_text(const Rope& rope) {
  std::string text;
  const Json rope_json = json_of(rope);
  for (const auto& [key, value] : *rope_json.find<Json::Object>("scaling")) {
    if (key == "type") {
      text = *value.as<std::string>();
    } else if (const auto* const list = value.as<Json::Array>()) {
      text += fmt::format(", {} for {} pairs", key, list->size());
    } else if (value.as<std::nullptr_t>() == nullptr) {
      text += fmt::format(", {} {}", key, dump_json(value));
    }
  }
  return text;
}

std::string finished(std::string text, const std::vector<std::string>& remarks) {
  if (!remarks.empty()) text += "\n";
  for (const std::string& remark : remarks) text += bullet(remark);
  return text;
}

// In the order of Verdict.
constexpr std::array<std::string_view, 7> kVerdictTexts = {
    "exact match: one convention reproduces every value",
    "likely: this convention reproduces the values, but it is not the only one",
    "unchanged",
    "a rotation at frequencies of no known scheme",
    "no match: no known convention reproduces this change",
    "too few tokens to tell",
    "no position: the change does not depend on position"};

// "1 1 1 0 1 2 3", shortened in the middle.
std::string positions_text(const std::vector<std::int64_t>& positions) {
  constexpr std::size_t kShown = 12;
  if (positions.size() <= 2 * kShown) return fmt::format("{}", fmt::join(positions, " "));
  return fmt::format("{} … {}", fmt::join(positions.begin(), positions.begin() + kShown, " "),
                     fmt::join(positions.end() - kShown, positions.end(), " "));
}

using Row = std::function<void(std::string_view, const std::string&)>;

void rope_rows(const Rope& rope, const Diagnosis& diagnosis, const Row& row) {
  row("scheme", "rope");
  row("pairs", std::string(choice_name(rope.layout)));
  row("rotates", fmt::format("{} dimensions from {}, {}", rope.dims, rope.first_dim,
                             rope.sign > 0 ? "counter-clockwise" : "clockwise"));
  if (!rope.sections.empty()) {
    row("axes", fmt::format("{} pairs, {}", fmt::join(rope.sections, " + "), choice_name(rope.section_order)));
  }
  if (const auto* const list = std::get_if<LongropeScaling>(&*rope.scaling)) {
    std::string divisors;
    for (const double divisor : list->short_factors) divisors += fmt::format("{:.4g} ", divisor);
    std::string_view name = "divisors";
    for (const std::string& line : wrap(divisors, std::min(output_columns(), 100) - 21)) {
      row(name, line);
      name = "";
    }
  }
  if (diagnosis.verdict == Verdict::kUnknown) return;
  row("base", fmt::format("{}", rope.base));
  row("scaling", scaling_text(rope));
  row("magnitude", fmt::format("{:.6g}", diagnosis.best->magnitude));
}

void scheme_rows(const Diagnosis& diagnosis, const Row& row) {
  const Convention& best = *diagnosis.best;
  if (const auto* const rope = std::get_if<Rope>(&best.scheme)) return rope_rows(*rope, diagnosis, row);
  if (const auto* const waves = std::get_if<Sinusoidal>(&best.scheme)) {
    row("scheme", "sinusoidal, added");
    row("columns", fmt::format("{}{}, spacing {}", choice_name(waves->layout),
                               best.is_swapped ? " with sine and cosine swapped" : "", choice_name(waves->spacing)));
    row("base", fmt::format("{}", waves->base));
    row("scale", fmt::format("{:.6g}", best.magnitude));
    if (best.input_factor != 1) row("tokens", fmt::format("multiplied by {:.6g} first", best.input_factor));
  } else if (const auto* const alibi = std::get_if<Alibi>(&best.scheme)) {
    row("scheme", "alibi");
    row("slopes", fmt::format("{} heads, max_bias {}", alibi->heads, alibi->max_bias));
    row("scale", fmt::format("{:.6g}", best.magnitude));
  } else if (const auto* const t5 = std::get_if<T5>(&best.scheme)) {
    row("scheme", "t5");
    row("buckets", fmt::format("{}, max_distance {}, {}", t5->buckets, t5->max_distance,
                               t5->bidirectional ? "bidirectional" : "causal"));
  }
}

// The positions of the tokens, from the result.
std::string place_text(const Convention& best, bool are_positions_known) {
  std::string text;
  if (!best.positions.empty()) {
    text = positions_text(best.positions);
  } else if (are_positions_known) {
    text = best.first_position == 0 ? "as given" : fmt::format("off by {}", best.first_position);
  } else {
    text = fmt::format("{}", best.first_position);
  }
  if (best.is_reversed) text += ", reversed";
  if (best.is_along_heads) text += ", along the axis before the sequence";
  if (best.position_factor != 1) text += fmt::format(", multiplied by {:.6g}", best.position_factor);
  return text;
}

}  // namespace

void place_paths(TwoTensorFlags& flags, std::string_view verb) {
  for (const std::string& path : flags.paths) {
    std::string& place = flags.before.empty() ? flags.before : flags.after;
    if (!place.empty()) refuse(fmt::format("{}: unexpected argument '{}': both files are given", verb, path));
    place = path;
  }
  flags.paths.clear();
}

void add_two_tensor_flags(Command verb, TwoTensorFlags& flags) {
  verb.add_option("PATHS", flags.paths);
  verb.add_option("--before", flags.before, "BEFORE: the vectors, or scores, before position was applied")
      .type_name("FILE");
  verb.add_option("--after", flags.after, "AFTER: the same, after position was applied").type_name("FILE");
  verb.add_option("--positions", flags.positions,
                  "position of each token: 0:8, 0,1,5 or @ids.npy, int64 [n] or [axes, n] (default: consecutive)")
      .type_name("P");
  verb.add_option("--axes", flags.axes,
                  "order of the axes: sd, hsd, shd, bsd, bhsd or bshd (b batch, h heads, s sequence, d features; "
                  "default: the last two are sd)")
      .type_name("WORD");
  verb.add_option("--dtype", flags.dtype,
                  "type of both; required for bf16, which .npy cannot represent (uint16 is read as its bits)")
      .type_name("TYPE");
  verb.add_flag("--json", flags.json, "one JSON document");
}

TwoTensors read_two_tensors(const TwoTensorFlags& flags, std::string_view verb) {
  const std::string_view scheme = verb == "check" ? "SCHEME " : "";
  for (const auto& [path, name] : {std::pair(&flags.before, "--before"), {&flags.after, "--after"}}) {
    if (path->empty()) refuse(fmt::format("{0}: {1} is missing (posenc {0} {2}BEFORE AFTER)", verb, name, scheme));
  }
  TwoTensors two;
  two.before = load(flags.before, flags.dtype);
  two.after = load(flags.after, flags.dtype);
  if (!(two.before.shape == two.after.shape)) {
    refuse(fmt::format("{} is {}, but {} is {}", flags.before, to_string(two.before.shape), flags.after,
                       to_string(two.after.shape)));
  }
  if (count_of(two.before.shape) == 0) {
    refuse(fmt::format("{} has shape {}, and so no elements", flags.before, to_string(two.before.shape)));
  }
  if (two.before.shape.rank < 2 || two.before.shape.rank > 4) {
    refuse(fmt::format("{} has shape {}; expected at most [batch, heads, sequence, features]", flags.before,
                       to_string(two.before.shape)));
  }
  two.before_view = with_sequence_last(two.before, flags.axes, flags.before);
  two.after_view = with_sequence_last(two.after, flags.axes, flags.after);
  if (flags.positions.empty()) return two;
  const PositionList list = positions_from(flags.positions);
  const std::int64_t sequence = two.before_view.shape.back(1);
  if (list.count != sequence) {
    refuse(fmt::format("{} has {} tokens per sequence, but {} positions are given (--axes says which axis that is)",
                       flags.before, sequence, list.count));
  }
  two.axes = list.axes;
  for (int axis = 0; axis < list.axes; ++axis) {
    for (std::int64_t i = 0; i < sequence; ++i) two.positions.push_back(position_at(list, axis, i));
  }
  return two;
}

std::string bullet(const std::string& text) {
  std::string result;
  std::string_view mark = "- ";
  for (const std::string& part : wrap(text, std::min(output_columns(), 100) - 4)) {
    result += fmt::format("  {}{}\n", mark, part);
    mark = "  ";
  }
  return result;
}

std::string diagnosis_text(const Diagnosis& diagnosis, bool are_positions_known) {
  const bool colour = wants_colour(STDOUT_FILENO);
  std::string text = bold(kVerdictTexts[static_cast<std::size_t>(diagnosis.verdict)], colour) + "\n";
  const Row row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {}  {}\n", dim(pad_right(name, 17), colour), value);
  };
  if (diagnosis.best) {
    const Convention& best = *diagnosis.best;
    text += "\n";
    scheme_rows(diagnosis, row);
    if (diagnosis.verdict == Verdict::kUnknown) return finished(std::move(text), diagnosis.remarks);
    const bool is_bias = std::holds_alternative<Alibi>(best.scheme) || std::holds_alternative<T5>(best.scheme);
    if (!is_bias) {
      row(are_positions_known || !best.positions.empty() ? "positions" : "first position",
          place_text(best, are_positions_known));
    }
    if (std::holds_alternative<Rope>(best.scheme)) {
      row("angle", fmt::format("{}{}", name_of(best.numerics),
                               best.is_numerics_sure ? "" : " (others cannot be told apart here)"));
    }
    row("relative residual", fmt::format("{:.2g} of the change", best.residual));
  }
  return finished(std::move(text), diagnosis.remarks);
}

}  // namespace posenc::cli
