#include "cli/system/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>

namespace posenc::cli {
namespace {

constexpr int kColumnsWithoutTerminal = 100;

struct CodeRange {
  std::uint32_t first, last;
};
// East Asian Wide and Fullwidth (Unicode 15, UAX #11), by block: Hangul, CJK, kana, fullwidth forms, emoji.
constexpr CodeRange kTwoColumns[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2E80, 0x303E}, {0x3041, 0x33FF},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xA960, 0xA97F}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF},
    {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};
// Combining marks, joiners and variation selectors.
constexpr CodeRange kNoColumn[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F}, {0x200B, 0x200F},
    {0x20D0, 0x20F0}, {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
};

template <std::size_t N> bool is_in(std::uint32_t code, const CodeRange (&ranges)[N]) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [code](const CodeRange& range) { return code >= range.first && code <= range.last; });
}
constexpr int kFewestColumns = 40;

Colour chosen_colour = Colour::kAuto;

std::string spaces(int count) { return std::string(std::max(count, 0), ' '); }

std::string styled(std::string_view text, const char* code, bool colour) {
  if (!colour) return std::string(text);
  return std::string("\033[") + code + "m" + std::string(text) + "\033[0m";
}

void wrap_line(std::string_view line, int columns, std::vector<std::string>& lines) {
  std::string current;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    if (!current.empty() && columns_of(current) + 1 + columns_of(word) > columns) {
      lines.push_back(current);
      current.clear();
    }
    if (!current.empty()) current += ' ';
    current += word;
  }
  lines.push_back(current);
}

}  // namespace

int output_columns() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::max<int>(size.ws_col, kFewestColumns);
  }
  return kColumnsWithoutTerminal;
}

void set_colour(Colour colour) { chosen_colour = colour; }

bool wants_colour(int descriptor) {
  if (chosen_colour != Colour::kAuto) return chosen_colour == Colour::kAlways;
  const char* const refused = std::getenv("NO_COLOR");
  if (refused != nullptr && *refused != '\0') return false;
  const char* const kind = std::getenv("TERM");
  return kind != nullptr && std::string_view(kind) != "dumb" && isatty(descriptor) == 1;
}

std::string bold(std::string_view text, bool colour) { return styled(text, "1", colour); }
std::string dim(std::string_view text, bool colour) { return styled(text, "2", colour); }

int columns_of(std::string_view text) {
  int columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at++]);
    if (first < 0x80U) {
      ++columns;
      continue;
    }
    // displayed text has been checked; in malformed text, each byte that starts a character counts as one column
    std::uint32_t code = first >= 0xF0U ? first & 0x07U : first >= 0xE0U ? first & 0x0FU : first & 0x1FU;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) {
      code = code << 6U | (static_cast<unsigned char>(text[at++]) & 0x3FU);
    }
    columns += is_in(code, kNoColumn) ? 0 : is_in(code, kTwoColumns) ? 2 : 1;
  }
  return columns;
}

std::string pad_right(std::string_view text, int columns) {
  return std::string(text) + spaces(columns - columns_of(text));
}
std::string pad_left(std::string_view text, int columns) {
  return spaces(columns - columns_of(text)) + std::string(text);
}

std::vector<std::string> wrap(std::string_view text, int columns) {
  std::vector<std::string> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    wrap_line(text.substr(0, end), columns, lines);
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

}  // namespace posenc::cli
