#include "cli/system/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace posenc::cli {
namespace {

constexpr int kColumnsWithoutTerminal = 100;
constexpr int kFewestColumns = 40;

Colour chosen_colour = Colour::kAuto;

std::string spaces(int count) { return std::string(static_cast<std::size_t>(std::max(count, 0)), ' '); }

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
  const auto begins_code_point = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return static_cast<int>(std::count_if(text.begin(), text.end(), begins_code_point));
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
