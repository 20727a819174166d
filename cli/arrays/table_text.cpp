#include "cli/arrays/table_text.h"

#include <algorithm>
#include <vector>

#include "cli/arrays/elements.h"
#include "cli/arrays/elision.h"
#include "cli/system/signals.h"
#include "cli/system/terminal.h"
#include "posenc/apply.h"

namespace posenc::cli {
namespace {

// Both ends of the rows that are shown. One row at a time: a row may have a million columns.
std::vector<std::vector<double>> values_of(const TableJob& job, const Shown& rows) {
  std::vector<std::vector<double>> values;
  std::vector<std::byte> bytes(job.form.width * size_of(job.type));
  std::vector<std::int64_t> scratch;
  for (const std::int64_t row : rows.indices()) {
    stop_if_signalled();
    tabulate({bytes.data(), job.type, {1, job.form.width}}, slice(job.positions, row, 1, scratch), job.form);
    std::vector<double> line;
    for (std::int64_t column = 0; column < job.form.width; ++column) {
      if (column >= kWidestScreen && column < job.form.width - kWidestScreen) continue;
      line.push_back(element_at(bytes.data(), job.type, column));
    }
    values.push_back(std::move(line));
  }
  return values;
}

}  // namespace

std::string table_text(const TableJob& job, int digits, int columns, bool colour) {
  const Shown rows = shown_rows(job.positions.count);
  std::vector<std::string> labels;
  for (const std::int64_t row : rows.indices()) labels.push_back(position_label(job.positions, row));

  std::vector<std::vector<std::string>> cells;
  int cell_columns = columns_of(std::to_string(job.form.width - 1));
  for (const std::vector<double>& line : values_of(job, rows)) {
    std::vector<std::string> texts;
    for (const double value : line) texts.push_back(rounded(value, digits));
    cell_columns = widest(texts, cell_columns);
    cells.push_back(std::move(texts));
  }
  const int label_columns = widest(labels, columns_of("position"));
  const int room = std::min(columns, kWidestScreen) - label_columns;
  const Shown shown = shown_columns(job.form.width, room, cell_columns + kColumnGap);

  std::vector<std::string> numbers;
  for (const std::int64_t column : shown.indices()) numbers.push_back(std::to_string(column));
  std::string text = dim(line_of("position", label_columns, numbers, cell_columns, shown), colour) + "\n";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!rows.is_whole() && static_cast<std::int64_t>(i) == rows.head) {
      text += line_left_out(label_columns) + "\n";
    }
    text += line_of(labels[i], label_columns, ends_of(cells[i], shown), cell_columns, shown) + "\n";
  }
  return text;
}

}  // namespace posenc::cli
