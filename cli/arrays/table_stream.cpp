#include "cli/arrays/table_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

#include "cli/arrays/array_name.h"
#include "cli/arrays/elements.h"
#include "cli/flags/engine_flags.h"
#include "cli/system/progress.h"
#include "cli/system/signals.h"
#include "posenc/apply.h"

namespace posenc::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "tables are written as the machine's own bytes");

struct Block {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::string_view bytes;
};

template <class Visit> void for_each_block(const TableJob& job, TableFormat format, bool with_progress, Visit visit) {
  const std::int64_t width = job.form.width;
  const std::int64_t row_bytes = width * size_of(job.type);
  const std::int64_t rows_at_once =
      std::clamp(bytes_at_once(format) / row_bytes, std::int64_t{1}, job.positions.count);
  std::vector<std::byte> block(static_cast<std::size_t>(rows_at_once * row_bytes));
  std::vector<std::int64_t> scratch;
  Progress progress(static_cast<double>(job.positions.count) * static_cast<double>(row_bytes), with_progress);

  for (std::int64_t row = 0; row < job.positions.count; row += rows_at_once) {
    stop_if_signalled();
    const std::int64_t rows = std::min(rows_at_once, job.positions.count - row);
    const TensorView out(block.data(), job.type, {rows, width});
    tabulate(out, slice(job.positions, row, rows, scratch), job.form);
    const auto bytes = static_cast<std::size_t>(rows * row_bytes);
    visit(Block{row, rows, {reinterpret_cast<const char*>(block.data()), bytes}});
    progress.advance(static_cast<double>(bytes));
  }
}

// One row's elements, separated by commas.
void append_row(std::string& text, const Block& block, std::int64_t row, const TableJob& job,
                std::string_view not_finite) {
  const auto* const data = reinterpret_cast<const std::byte*>(block.bytes.data());
  const std::int64_t begin = row * job.form.width;
  for (std::int64_t column = 0; column < job.form.width; ++column) {
    if (column > 0) text += ',';
    append_element(text, data, job.type, begin + column, not_finite);
  }
}

void write_csv(const TableJob& job, const ByteSink& sink, bool with_progress) {
  const int axes = job.positions.axes;
  std::string text = "position";
  for (int axis = 1; axis < axes; ++axis) text += fmt::format(",position{}", axis);
  for (std::int64_t column = 0; column < job.form.width; ++column) text += fmt::format(",{}", column);
  text += '\n';
  for_each_block(job, TableFormat::kCsv, with_progress, [&](const Block& block) {
    for (std::int64_t row = 0; row < block.rows; ++row) {
      for (int axis = 0; axis < axes; ++axis) {
        fmt::format_to(std::back_inserter(text), "{},", position_at(job.positions, axis, block.first_row + row));
      }
      append_row(text, block, row, job, "");
      text += '\n';
    }
    sink(text);
    text.clear();
  });
}

void write_json(const TableJob& job, const ByteSink& sink, bool with_progress) {
  sink(fmt::format("{{\"scheme\":{},\"positions\":", to_json(job.scheme)));
  write_positions(job.positions, sink);
  sink(fmt::format(",\"shape\":[{},{}],\"dtype\":\"{}\",\"values\":[", job.positions.count, job.form.width,
                   name_of(job.type)));
  std::string text;
  for_each_block(job, TableFormat::kJson, with_progress, [&](const Block& block) {
    for (std::int64_t row = 0; row < block.rows; ++row) {
      text += block.first_row + row > 0 ? ",\n[" : "\n[";
      append_row(text, block, row, job, "null");
      text += ']';
    }
    sink(text);
    text.clear();
  });
  sink("\n]}\n");
}

}  // namespace

std::string table_head(const TableJob& job, TableFormat format) {
  return array_head(format == TableFormat::kNpy ? ArrayFormat::kNpy : ArrayFormat::kSafetensors, "table", job.type,
                    {job.positions.count, job.form.width});
}

double table_bytes(double rows, double width, DataType type, TableFormat format) {
  // sign, point, exponent, comma, and 9 or 17 digits
  const double as_text = type == DataType::kF64 ? 25 : 16;
  return rows * width * (is_binary(format) ? static_cast<double>(size_of(type)) : as_text);
}

std::int64_t bytes_at_once(TableFormat format) {
  return is_binary(format) ? block_bytes() : std::min(block_bytes(), std::int64_t{1} << 20);
}

void write_positions(const PositionList& positions, const ByteSink& sink) {
  constexpr std::size_t kFlushAt = 1 << 18;
  std::string text = positions.axes > 1 ? "[" : "";
  for (int axis = 0; axis < positions.axes; ++axis) {
    text += axis > 0 ? ",[" : "[";
    for (std::int64_t i = 0; i < positions.count; ++i) {
      fmt::format_to(std::back_inserter(text), "{}{}", i > 0 ? "," : "", position_at(positions, axis, i));
      if (text.size() < kFlushAt) continue;
      stop_if_signalled();
      sink(text);
      text.clear();
    }
    text += ']';
  }
  sink(text + (positions.axes > 1 ? "]" : ""));
}

void write_table(const TableJob& job, TableFormat format, const ByteSink& sink, bool with_progress) {
  try_largest(job.form, job.positions);
  switch (format) {
    case TableFormat::kNpy:
    case TableFormat::kSafetensors:
      sink(table_head(job, format));
      for_each_block(job, format, with_progress, [&](const Block& block) { sink(block.bytes); });
      return;
    case TableFormat::kCsv:
      return write_csv(job, sink, with_progress);
    case TableFormat::kJson:
      return write_json(job, sink, with_progress);
  }
}

}  // namespace posenc::cli
