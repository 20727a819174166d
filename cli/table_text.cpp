#include "cli/table_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/elements.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "posenc/apply.h"

namespace posenc::cli {
namespace {

constexpr std::string_view kLeftOut = "…";
constexpr int kGap = 2;
constexpr int kWidestScreen = 1000;

// Indices 0 … head − 1 and count − tail … count − 1; all of them where nothing is left out.
struct Shown {
  std::int64_t count = 0;
  std::int64_t head = 0;
  std::int64_t tail = 0;

  bool is_whole() const { return head == count; }
  std::vector<std::int64_t> indices() const {
    std::vector<std::int64_t> list;
    for (std::int64_t i = 0; i < head; ++i) list.push_back(i);
    for (std::int64_t i = count - tail; i < count; ++i) list.push_back(i);
    return list;
  }
};

Shown shown_rows(std::int64_t count) {
  constexpr std::int64_t kMost = 24, kHead = 12, kTail = 4;
  return count <= kMost ? Shown{count, count, 0} : Shown{count, kHead, kTail};
}

// `room`: columns of the screen beside the labels; `place`: how many of them one column of the table takes.
Shown shown_columns(std::int64_t count, int room, int place) {
  constexpr std::int64_t kFewest = 3;
  if (count <= std::max<std::int64_t>(room / place, kFewest)) return {count, count, 0};
  const std::int64_t places = std::max<std::int64_t>((room - kGap - columns_of(kLeftOut)) / place, kFewest - 1);
  return {count, (places + 1) / 2, places / 2};
}

std::string rounded(double value, int digits) {
  std::string text = fmt::format("{:.{}f}", value, digits);
  const bool is_zero = text.find_first_not_of("-0.") == std::string::npos;
  return is_zero && text.starts_with('-') ? text.substr(1) : text;
}

int widest(const std::vector<std::string>& texts, int columns) {
  for (const std::string& text : texts) columns = std::max(columns, columns_of(text));
  return columns;
}

// A line of the table, with the sign of what is left out where the columns break.
std::string line_of(std::string_view label, int label_columns, const std::vector<std::string>& cells,
                    int cell_columns, const Shown& shown) {
  std::string line = pad_left(label, label_columns);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!shown.is_whole() && static_cast<std::int64_t>(i) == shown.head) line += "  " + std::string(kLeftOut);
    line += pad_left(cells[i], cell_columns + kGap);
  }
  return line;
}

// Both ends of a row's elements.
std::vector<double> ends_of(const std::byte* data, DataType type, std::int64_t count) {
  std::vector<double> line;
  for (std::int64_t column = 0; column < count; ++column) {
    if (column < kWidestScreen || column >= count - kWidestScreen) line.push_back(element_at(data, type, column));
  }
  return line;
}

}  // namespace

std::string grid_text(const TextGrid& grid, int digits, int columns, bool colour) {
  const Shown rows = shown_rows(grid.rows);
  std::vector<std::string> labels;
  std::vector<std::vector<std::string>> cells;
  int cell_columns = widest({grid.column_label(0), grid.column_label(grid.columns - 1)}, 0);
  for (const std::int64_t row : rows.indices()) {
    stop_if_signalled();
    labels.push_back(grid.row_label(row));
    std::vector<std::string> texts;
    const std::vector<std::byte> bytes = grid.row(row);
    for (const double value : ends_of(bytes.data(), grid.type, grid.columns)) texts.push_back(rounded(value, digits));
    cell_columns = widest(texts, cell_columns);
    cells.push_back(std::move(texts));
  }
  const int label_columns = widest(labels, columns_of(grid.corner));
  const int room = std::min(columns, kWidestScreen) - label_columns;
  const Shown shown = shown_columns(grid.columns, room, cell_columns + kGap);

  std::vector<std::string> numbers;
  for (const std::int64_t column : shown.indices()) numbers.push_back(grid.column_label(column));
  std::string text = dim(line_of(grid.corner, label_columns, numbers, cell_columns, shown), colour) + "\n";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!rows.is_whole() && static_cast<std::int64_t>(i) == rows.head) {
      text += pad_left(kLeftOut, label_columns) + "\n";
    }
    const auto& line = cells[i];
    std::vector<std::string> kept(line.begin(), line.begin() + shown.head);
    kept.insert(kept.end(), line.end() - shown.tail, line.end());
    text += line_of(labels[i], label_columns, kept, cell_columns, shown) + "\n";
  }
  return text;
}

std::string position_label(const PositionList& positions, std::int64_t index) {
  std::string label;
  for (int axis = 0; axis < positions.axes; ++axis) {
    label += fmt::format("{}{}", axis > 0 ? "," : "", position_at(positions, axis, index));
  }
  return label;
}

std::string table_text(const TableJob& job, int digits, int columns, bool colour) {
  TextGrid grid;
  grid.corner = "position";
  grid.rows = job.positions.count;
  grid.columns = job.form.width;
  grid.type = job.type;
  grid.row_label = [&](std::int64_t row) { return position_label(job.positions, row); };
  grid.column_label = [](std::int64_t column) { return std::to_string(column); };
  grid.row = [&](std::int64_t row) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(job.form.width * size_of(job.type)));
    std::vector<std::int64_t> scratch;
    tabulate({bytes.data(), job.type, {1, job.form.width}}, slice(job.positions, row, 1, scratch), job.form);
    return bytes;
  };
  return grid_text(grid, digits, columns, colour);
}

}  // namespace posenc::cli
