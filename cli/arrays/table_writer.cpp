#include "cli/arrays/table_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "cli/arrays/elements.h"
#include "cli/flags/engine_flags.h"
#include "cli/system/progress.h"
#include "cli/system/signals.h"

namespace posenc::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "tables are written as the machine's own bytes");

// Text is several times longer than the values it represents.
std::int64_t bytes_at_once(TableFormat format) {
  return is_binary(format) ? block_bytes() : std::min(block_bytes(), std::int64_t{1} << 20);
}

class TableWriter {
 public:
  TableWriter(const TableSource& table, TableFormat format, const ByteSink& sink, bool with_progress)
      : table_(table),
        format_(format),
        sink_(sink),
        row_bytes_(table.columns * size_of(table.type)),
        progress_(
            static_cast<double>(table.planes) * static_cast<double>(table.rows) * static_cast<double>(row_bytes_),
            with_progress) {}

  void write() {
    if (format_ == TableFormat::kCsv) return write_csv();
    if (format_ == TableFormat::kJson) return write_json();
    sink_(table_.head(format_));
    for (std::int64_t plane = 0; plane < table_.planes; ++plane) {
      if (format_ == TableFormat::kSafetensors && table_.between) sink_(table_.between(plane));
      for_each_block([&](std::int64_t first, std::int64_t rows) {
        const auto* const bytes = reinterpret_cast<const char*>(table_.make(plane, first, rows));
        sink_({bytes, static_cast<std::size_t>(rows * row_bytes_)});
        advance(rows);
      });
    }
  }

 private:
  template <class Visit> void for_each_block(const Visit& visit) {
    const std::int64_t most = bytes_at_once(format_) / std::max<std::int64_t>(table_.planes_at_once * row_bytes_, 1);
    const std::int64_t at_once = std::max<std::int64_t>(1, std::min(most, table_.rows));
    for (std::int64_t first = 0; first < table_.rows; first += at_once) {
      stop_if_signalled();
      visit(first, std::min(at_once, table_.rows - first));
    }
  }

  void advance(std::int64_t rows) { progress_.advance(static_cast<double>(rows * row_bytes_)); }

  // One row's elements, separated by commas.
  void append_row(const std::byte* data, std::int64_t row, std::string_view not_finite) {
    for (std::int64_t column = 0; column < table_.columns; ++column) {
      if (column > 0) text_ += ',';
      append_element(text_, data, table_.type, row * table_.columns + column, not_finite);
    }
  }

  void flush() {
    sink_(text_);
    text_.clear();
  }

  void write_csv() {
    text_ = table_.csv_head + "\n";
    const std::int64_t beside = table_.is_side_by_side ? table_.planes : 1;
    for (std::int64_t plane = 0; plane < table_.planes; plane += beside) {
      for_each_block([&](std::int64_t first, std::int64_t rows) {
        std::vector<const std::byte*> data;
        for (std::int64_t i = 0; i < beside; ++i) data.push_back(table_.make(plane + i, first, rows));
        for (std::int64_t row = 0; row < rows; ++row) {
          text_ += table_.csv_label(plane, first + row);
          for (std::size_t i = 0; i < data.size(); ++i) {
            if (i > 0) text_ += ',';
            append_row(data[i], row, "");
          }
          text_ += '\n';
        }
        flush();
        advance(beside * rows);
      });
    }
  }

  void write_json() {
    table_.json_head(sink_);
    const bool is_nested = table_.is_nested_in_json;
    for (std::int64_t plane = 0; plane < table_.planes; ++plane) {
      if (plane == 0 || !is_nested) {
        text_ += fmt::format("{},\"{}\":[", plane > 0 ? "\n]" : "", table_.json_lists[plane]);
      }
      if (is_nested) text_ += plane > 0 ? ",\n[" : "\n[";
      for_each_block([&](std::int64_t first, std::int64_t rows) {
        const std::byte* const data = table_.make(plane, first, rows);
        for (std::int64_t row = 0; row < rows; ++row) {
          text_ += first + row > 0 ? ",\n[" : "\n[";
          append_row(data, row, "null");
          text_ += ']';
        }
        flush();
        advance(rows);
      });
      if (is_nested) text_ += ']';
    }
    text_ += "\n]}\n";
    flush();
  }

  const TableSource& table_;
  TableFormat format_;
  const ByteSink& sink_;
  std::int64_t row_bytes_;
  Progress progress_;
  std::string text_;
};

}  // namespace

double table_bytes(double rows, double width, DataType type, TableFormat format) {
  // sign, point, exponent, comma, and 9 or 17 digits
  const double as_text = type == DataType::kF64 ? 25 : 16;
  return rows * width * (is_binary(format) ? static_cast<double>(size_of(type)) : as_text);
}

void write_positions(const PositionList& positions, const ByteSink& sink) {
  constexpr std::size_t kFlushAt = 1 << 18;
  std::string text = positions.axes > 1 ? "[" : "";
  for (int axis = 0; axis < positions.axes; ++axis) {
    text += axis > 0 ? ",[" : "[";
    for (std::int64_t i = 0; i < positions.count; ++i) {
      // JSON has no fractions, so they are strings: "1/3"
      const bool is_whole = position_at(positions, axis, i) % positions.denominator == 0;
      const std::string_view quote = is_whole ? "" : "\"";
      fmt::format_to(std::back_inserter(text), "{}{}{}{}", i > 0 ? "," : "", quote, position_text(positions, axis, i),
                     quote);
      if (text.size() < kFlushAt) continue;
      stop_if_signalled();
      sink(text);
      text.clear();
    }
    text += ']';
  }
  sink(text + (positions.axes > 1 ? "]" : ""));
}

std::string csv_positions_head(const PositionList& positions) {
  std::string text = "position";
  for (int axis = 1; axis < positions.axes; ++axis) text += fmt::format(",position{}", axis);
  return text;
}

std::string csv_position(const PositionList& positions, std::int64_t row) {
  std::string text;
  for (int axis = 0; axis < positions.axes; ++axis) {
    fmt::format_to(std::back_inserter(text), "{},", position_text(positions, axis, row));
  }
  return text;
}

void write_table(const TableSource& table, TableFormat format, const ByteSink& sink, bool with_progress) {
  TableWriter(table, format, sink, with_progress).write();
}

}  // namespace posenc::cli
