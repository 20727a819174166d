#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/plots/palette.h"

namespace posenc::cli {

/// The escape sequence that starts a text or background colour. Terminals that announce 24-bit colour get the exact
/// one, all others the nearest of 256.
std::string colour_code(Rgb colour, bool is_background);

/// The cells of a terminal. Each holds a character, or 2 × 4 dots in one braille character.
class Canvas {
 public:
  Canvas(int columns, int rows);

  int columns() const { return columns_; }
  int rows() const { return rows_; }

  /// A dot; (0, 0) is at the top left. Dots outside are not drawn.
  void dot(int x, int y, Rgb colour);
  void line(double x0, double y0, double x1, double y1, Rgb colour);
  /// Characters from this cell to the right, truncated to fit. They cover dots.
  void write(int column, int row, std::string_view text, std::optional<Rgb> colour);
  /// One cell with a text and a background colour.
  void fill(int column, int row, std::string_view character, Rgb colour, Rgb behind);
  /// Writes a character if the cell is empty.
  void shade(int column, int row, std::string_view character, Rgb colour);

  /// A line of text without trailing spaces.
  std::string row_text(int row, bool colour) const;

 private:
  struct Cell {
    std::uint8_t dots = 0;
    std::string character = {};
    bool is_shade = false;
    std::optional<Rgb> colour = {}, behind = {};
  };
  Cell* at(int column, int row);

  int columns_, rows_;
  std::vector<Cell> cells_;
};

}  // namespace posenc::cli
