#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/table_stream.h"

namespace posenc::cli {

/// Rows and columns of numbers that are still to be made.
struct TextGrid {
  std::string_view corner;  // above the labels of rows
  std::int64_t rows = 0, columns = 0;
  DataType type = DataType::kF32;
  std::function<std::string(std::int64_t)> row_label, column_label;
  std::function<std::vector<std::byte>(std::int64_t)> row;  // the elements of one row
};
/// The grid as people read it: a column of labels, a header of labels, values aligned. Where it is longer or wider
/// than a screen, the middle is left out with "…", and its rows are never computed.
std::string grid_text(const TextGrid& grid, int digits, int columns, bool colour);

/// "8", or "0,1" where a position has several coordinates.
std::string position_label(const PositionList& positions, std::int64_t index);

/// The table as people read it: a column of positions, a header of column numbers, values aligned. Where it is
/// longer or wider than a screen, the middle is left out with "…" and never computed.
std::string table_text(const TableJob& job, int digits, int columns, bool colour);

}  // namespace posenc::cli
