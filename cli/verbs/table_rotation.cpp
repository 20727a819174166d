#include "cli/verbs/table_rotation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "cli/arrays/elements.h"
#include "cli/system/progress.h"
#include "cli/system/signals.h"
#include "posenc/apply.h"
#include "posenc/json.h"
#include "posenc/npy.h"
#include "posenc/safetensors.h"

namespace posenc::cli {
namespace {

enum Half { kCosines, kSines };

// Some rows of both halves. They are made together, so that a table of one block is made once.
class Block {
 public:
  Block(const RotationTableJob& job, TableFormat format)
      : job_(job),
        row_bytes_(job.pairs() * size_of(job.type)),
        most_rows_(std::clamp(bytes_at_once(format) / (2 * row_bytes_), std::int64_t{1}, job.positions.count)) {
    for (auto& half : bytes_) half.resize(static_cast<std::size_t>(most_rows_ * row_bytes_));
  }

  std::int64_t most_rows() const { return most_rows_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t first() const { return first_; }

  void make(std::int64_t first) {
    stop_if_signalled();
    const std::int64_t rows = std::min(most_rows_, job_.positions.count - first);
    if (first == first_ && rows == rows_) return;
    first_ = first;
    rows_ = rows;
    const Extents shape = {rows, job_.pairs()};
    tabulate({bytes_[kCosines].data(), job_.type, shape}, {bytes_[kSines].data(), job_.type, shape},
             slice(job_.positions, first, rows, scratch_), job_.form);
  }

  std::string_view bytes(Half half) const {
    return {reinterpret_cast<const char*>(bytes_[half].data()), static_cast<std::size_t>(rows_ * row_bytes_)};
  }

  // One row's elements, separated by commas.
  void append_row(std::string& text, Half half, std::int64_t row, std::string_view not_finite) const {
    for (std::int64_t pair = 0; pair < job_.pairs(); ++pair) {
      if (pair > 0) text += ',';
      append_element(text, bytes_[half].data(), job_.type, row * job_.pairs() + pair, not_finite);
    }
  }

 private:
  const RotationTableJob& job_;
  std::int64_t row_bytes_;
  std::int64_t most_rows_;
  std::int64_t first_ = -1;
  std::int64_t rows_ = 0;
  std::array<std::vector<std::byte>, 2> bytes_;
  std::vector<std::int64_t> scratch_;
};

double bytes_of_half(const RotationTableJob& job) {
  return static_cast<double>(job.positions.count) * static_cast<double>(job.pairs() * size_of(job.type));
}

template <class Visit>
void for_each_block(const RotationTableJob& job, Block& block, Progress& progress, const Visit& visit) {
  for (std::int64_t row = 0; row < job.positions.count; row += block.most_rows()) {
    block.make(row);
    visit();
    progress.advance(static_cast<double>(block.bytes(kCosines).size()));
  }
}

// In .safetensors the widest elements stand first, and then tensors by name: frequencies are f64.
bool frequencies_first(const RotationTableJob& job) { return job.type != DataType::kF64; }

void write_binary(const RotationTableJob& job, TableFormat format, const ByteSink& sink, bool with_progress) {
  Block block(job, format);
  Progress progress(2 * bytes_of_half(job), with_progress);
  sink(rotation_table_head(job, format));
  if (format == TableFormat::kSafetensors) {
    const std::vector<double> frequencies = frequencies_of(job.form);
    const auto bytes = std::as_bytes(std::span(frequencies));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (frequencies_first(job)) sink(text);
    for (const Half half : {kCosines, kSines}) {
      if (half == kSines && !frequencies_first(job)) sink(text);
      for_each_block(job, block, progress, [&] { sink(block.bytes(half)); });
    }
    return;
  }
  for (const Half half : {kCosines, kSines}) {
    for_each_block(job, block, progress, [&] { sink(block.bytes(half)); });
  }
}

void write_csv(const RotationTableJob& job, const ByteSink& sink, bool with_progress) {
  Block block(job, TableFormat::kCsv);
  Progress progress(bytes_of_half(job), with_progress);
  const int axes = job.positions.axes;
  std::string text = "position";
  for (int axis = 1; axis < axes; ++axis) text += fmt::format(",position{}", axis);
  for (const char letter : {'c', 's'}) {
    for (std::int64_t pair = 0; pair < job.pairs(); ++pair) text += fmt::format(",{}{}", letter, pair);
  }
  text += '\n';
  for_each_block(job, block, progress, [&] {
    for (std::int64_t row = 0; row < block.rows(); ++row) {
      for (int axis = 0; axis < axes; ++axis) {
        fmt::format_to(std::back_inserter(text), "{},", position_at(job.positions, axis, block.first() + row));
      }
      block.append_row(text, kCosines, row, "");
      text += ',';
      block.append_row(text, kSines, row, "");
      text += '\n';
    }
    sink(text);
    text.clear();
  });
}

void write_json(const RotationTableJob& job, const ByteSink& sink, bool with_progress) {
  Block block(job, TableFormat::kJson);
  Progress progress(2 * bytes_of_half(job), with_progress);
  sink(fmt::format("{{\"scheme\":{},\"positions\":", to_json(job.scheme)));
  write_positions(job.positions, sink);
  Json::Array frequencies;
  for (const double frequency : frequencies_of(job.form)) frequencies.emplace_back(frequency);
  sink(fmt::format(",\"frequencies\":{},\"magnitude\":{},\"softmax_factor\":{}", dump_json(std::move(frequencies)),
                   dump_json(job.form.magnitude), dump_json(job.form.softmax_factor)));
  std::string text;
  for (const Half half : {kCosines, kSines}) {
    text += half == kCosines ? ",\"cosines\":[" : "\n],\"sines\":[";
    for_each_block(job, block, progress, [&] {
      for (std::int64_t row = 0; row < block.rows(); ++row) {
        text += block.first() + row > 0 ? ",\n[" : "\n[";
        block.append_row(text, half, row, "null");
        text += ']';
      }
      sink(text);
      text.clear();
    });
  }
  sink("\n]}\n");
}

}  // namespace

std::string rotation_table_head(const RotationTableJob& job, TableFormat format) {
  if (format == TableFormat::kNpy) return npy_head(job.type, job.shape());
  const Extents half = {job.positions.count, job.pairs()};
  SafetensorsHead head;
  head.tensors = {{.name = "cos", .type = job.type, .shape = half},
                  {.name = "frequencies", .type = DataType::kF64, .shape = {job.pairs()}},
                  {.name = "sin", .type = job.type, .shape = half}};
  return lay_out_safetensors(head);
}

void write_rotation_table(const RotationTableJob& job, TableFormat format, const ByteSink& sink, bool with_progress) {
  try_ends(job.form, job.positions);
  switch (format) {
    case TableFormat::kNpy:
    case TableFormat::kSafetensors:
      return write_binary(job, format, sink, with_progress);
    case TableFormat::kCsv:
      return write_csv(job, sink, with_progress);
    case TableFormat::kJson:
      return write_json(job, sink, with_progress);
  }
}

void try_ends(const Rotation& form, const PositionList& list) {
  if (list.count == 0) return;
  std::int64_t smallest = 0, largest = list.count - 1;
  if (!list.ids.empty()) {
    // of the first axis, as growth has only one
    const auto [low, high] = std::minmax_element(list.ids.begin(), list.ids.begin() + list.count);
    smallest = low - list.ids.begin();
    largest = high - list.ids.begin();
  }
  std::vector<float> row(static_cast<std::size_t>(2 * pairs_of(form)));
  std::vector<std::int64_t> scratch;
  for (const std::int64_t index : {smallest, largest}) {
    tabulate(view(row.data(), {1, pairs_of(form)}), view(row.data() + pairs_of(form), {1, pairs_of(form)}),
             slice(list, index, 1, scratch), form);
  }
}

}  // namespace posenc::cli
