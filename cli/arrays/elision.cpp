#include "cli/arrays/elision.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/system/terminal.h"

namespace posenc::cli {
namespace {

constexpr std::string_view kLeftOut = "…";

}  // namespace

std::vector<std::int64_t> Shown::indices() const {
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < head; ++i) list.push_back(i);
  for (std::int64_t i = count - tail; i < count; ++i) list.push_back(i);
  return list;
}

Shown shown_rows(std::int64_t count) {
  constexpr std::int64_t kMost = 24, kHead = 12, kTail = 4;
  return count <= kMost ? Shown{count, count, 0} : Shown{count, kHead, kTail};
}

Shown shown_columns(std::int64_t count, int room, int place) {
  constexpr std::int64_t kFewest = 3;
  if (count <= std::max<std::int64_t>(room / place, kFewest)) return {count, count, 0};
  const std::int64_t places = std::max<std::int64_t>((room - kColumnGap - columns_of(kLeftOut)) / place, kFewest - 1);
  return {count, (places + 1) / 2, places / 2};
}

std::string rounded(double value, int digits) {
  std::string text = fmt::format("{:.{}f}", value, digits);
  const bool is_zero = text.find_first_not_of("-0.") == std::string::npos;
  return is_zero && text.starts_with('-') ? text.substr(1) : text;
}

std::string position_label(const PositionList& positions, std::int64_t index) {
  std::string label;
  for (int axis = 0; axis < positions.axes; ++axis) {
    label += fmt::format("{}{}", axis > 0 ? "," : "", position_text(positions, axis, index));
  }
  return label;
}

int widest(const std::vector<std::string>& texts, int columns) {
  for (const std::string& text : texts) columns = std::max(columns, columns_of(text));
  return columns;
}

std::string line_of(std::string_view label, int label_columns, const std::vector<std::string>& cells,
                    int cell_columns, const Shown& shown) {
  std::string line = pad_left(label, label_columns);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!shown.is_whole() && static_cast<std::int64_t>(i) == shown.head) line += "  " + std::string(kLeftOut);
    line += pad_left(cells[i], cell_columns + kColumnGap);
  }
  return line;
}

std::string line_left_out(int label_columns) { return pad_left(kLeftOut, label_columns); }

std::vector<std::string> ends_of(const std::vector<std::string>& cells, const Shown& shown) {
  std::vector<std::string> kept(cells.begin(), cells.begin() + shown.head);
  kept.insert(kept.end(), cells.end() - shown.tail, cells.end());
  return kept;
}

}  // namespace posenc::cli
