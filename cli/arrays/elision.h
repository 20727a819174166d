#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/positions_argument.h"

namespace posenc::cli {

// Tables that fit on a screen: both ends, with "…" for what is omitted between them.

inline constexpr int kColumnGap = 2;        // between two columns
inline constexpr int kWidestScreen = 1000;  // columns past this many on either side are never shown

/// Indices 0 … head − 1 and count − tail … count − 1; all of them if nothing is omitted.
struct Shown {
  std::int64_t count = 0;
  std::int64_t head = 0;
  std::int64_t tail = 0;

  bool is_whole() const { return head == count; }
  std::vector<std::int64_t> indices() const;
};

Shown shown_rows(std::int64_t count);
/// `room`: columns of the screen beside the labels; `place`: how many of them one column of the table takes.
Shown shown_columns(std::int64_t count, int room, int place);

/// A zero has no sign.
std::string rounded(double value, int digits);
/// "7", or "0,2" if positions have two axes.
std::string position_label(const PositionList& positions, std::int64_t index);
/// The width of the widest text, or `columns` if that is more.
int widest(const std::vector<std::string>& texts, int columns);

/// A line of a table, with "…" where columns are omitted.
std::string line_of(std::string_view label, int label_columns, const std::vector<std::string>& cells,
                    int cell_columns, const Shown& shown);
/// The line that represents omitted rows.
std::string line_left_out(int label_columns);

/// The cells that are shown, of those for the ends of a row.
std::vector<std::string> ends_of(const std::vector<std::string>& cells, const Shown& shown);

}  // namespace posenc::cli
