#include "cli/plots/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace posenc::cli {
namespace {

bool shows_every_colour() {
  const char* const kind = std::getenv("COLORTERM");
  return kind != nullptr && (std::string_view(kind) == "truecolor" || std::string_view(kind) == "24bit");
}

// The nearest of the 6 × 6 × 6 colours and 24 greys in xterm's palette, which start at 16.
int nearest_of_256(Rgb colour) {
  static constexpr std::array<int, 6> kLevels = {0, 95, 135, 175, 215, 255};
  const auto level = [](int part) {
    int best = 0;
    for (int i = 1; i < 6; ++i) {
      const auto off = [&](int n) { return std::abs(kLevels[n] - part); };
      if (off(i) < off(best)) best = i;
    }
    return best;
  };
  const auto square = [](int x) { return x * x; };
  const int r = level(colour.red), g = level(colour.green), b = level(colour.blue);
  const auto off_by = [&](int red, int green, int blue) {
    return square(red - colour.red) + square(green - colour.green) + square(blue - colour.blue);
  };
  const auto of = [](int n) { return kLevels[n]; };
  const int grey = std::clamp((colour.red + colour.green + colour.blue) / 3 - 3, 0, 235) / 10;
  const int shade = 8 + 10 * grey;
  if (off_by(shade, shade, shade) < off_by(of(r), of(g), of(b))) return 232 + grey;
  return 16 + 36 * r + 6 * g + b;
}

// U+2800 and up: bit n is dot n of the braille cell.
std::string braille(std::uint8_t dots) {
  return {'\xe2', static_cast<char>(0xa0 | (dots >> 6U)), static_cast<char>(0x80 | (dots & 0x3fU))};
}

constexpr std::array<std::array<std::uint8_t, 2>, 4> kDotBits = {
    {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};

}  // namespace

std::string colour_code(Rgb colour, bool is_background) {
  const int layer = is_background ? 48 : 38;
  if (shows_every_colour()) return fmt::format("\033[{};2;{};{};{}m", layer, colour.red, colour.green, colour.blue);
  return fmt::format("\033[{};5;{}m", layer, nearest_of_256(colour));
}

Canvas::Canvas(int columns, int rows)
    : columns_(std::max(columns, 1)),
      rows_(std::max(rows, 1)),
      cells_(static_cast<std::size_t>(columns_) * static_cast<std::size_t>(rows_)) {}

Canvas::Cell* Canvas::at(int column, int row) {
  if (column < 0 || row < 0 || column >= columns_ || row >= rows_) return nullptr;
  return &cells_[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + column];
}

void Canvas::dot(int x, int y, Rgb colour) {
  if (x < 0 || y < 0) return;
  Cell* const cell = at(x / 2, y / 4);
  if (cell == nullptr) return;
  cell->dots |= kDotBits[y % 4][x % 2];
  if (cell->character.empty() || cell->is_shade) cell->colour = colour;
}

void Canvas::line(double x0, double y0, double x1, double y1, Rgb colour) {
  // Bounds the time for a line that extends far outside, where nothing is drawn.
  const double steps = std::min(std::ceil(std::max(std::fabs(x1 - x0), std::fabs(y1 - y0))), 1e5);
  for (double step = 0; step <= steps; ++step) {
    const double share = steps > 0 ? step / steps : 0;
    dot(static_cast<int>(std::lround(x0 + (x1 - x0) * share)), static_cast<int>(std::lround(y0 + (y1 - y0) * share)),
        colour);
  }
}

void Canvas::write(int column, int row, std::string_view text, std::optional<Rgb> colour) {
  while (!text.empty()) {
    std::size_t length = 1;
    while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) ++length;
    if (Cell* const cell = at(column++, row)) {
      cell->character = text.substr(0, length);
      cell->is_shade = false;
      cell->colour = colour;
    }
    text.remove_prefix(length);
  }
}

void Canvas::fill(int column, int row, std::string_view character, Rgb colour, Rgb behind) {
  if (Cell* const cell = at(column, row)) {
    cell->character = character;
    cell->is_shade = false;
    cell->colour = colour;
    cell->behind = behind;
  }
}

void Canvas::shade(int column, int row, std::string_view character, Rgb colour) {
  Cell* const cell = at(column, row);
  if (cell == nullptr || !cell->character.empty() || cell->dots != 0) return;
  cell->character = character;
  cell->is_shade = true;
  cell->colour = colour;
}

std::string Canvas::row_text(int row, bool colour) const {
  const auto first = cells_.begin() + static_cast<std::ptrdiff_t>(row) * columns_;
  const auto is_empty = [&](const Cell& cell) {
    return cell.dots == 0 && (cell.character.empty() || cell.character == " ") && !(colour && cell.behind);
  };
  auto end = first + columns_;
  while (end != first && is_empty(*(end - 1))) --end;

  std::string text, current;
  for (auto cell = first; cell != end; ++cell) {
    std::string code;
    if (colour && !is_empty(*cell)) {
      if (cell->colour) code += colour_code(*cell->colour, false);
      if (cell->behind) code += colour_code(*cell->behind, true);
    }
    if (code != current) {
      if (!current.empty()) text += "\033[0m";
      text += code;
      current = code;
    }
    if (!cell->character.empty() && !(cell->is_shade && cell->dots != 0)) {
      text += cell->character;
    } else {
      text += cell->dots != 0 ? braille(cell->dots) : " ";
    }
  }
  if (!current.empty()) text += "\033[0m";
  return text;
}

}  // namespace posenc::cli
