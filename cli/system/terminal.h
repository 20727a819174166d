#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posenc::cli {

/// The width of the terminal on standard output, or 100 if it is not a terminal.
int output_columns();
/// When to print in colour: if the terminal supports it, or as the user chose.
enum class Colour { kAuto, kAlways, kNever };
void set_colour(Colour colour);
/// Whether to use colour on this descriptor: as set by set_colour(), else if it is a terminal that is not dumb and
/// NO_COLOR is not set.
bool wants_colour(int descriptor);

/// Bold or dim if `colour` is true, else the text unchanged.
std::string bold(std::string_view text, bool colour);
std::string dim(std::string_view text, bool colour);

/// How many columns a UTF-8 text takes; one for each code point, which is true of all that we print.
int columns_of(std::string_view text);
/// Padded with spaces on the right (or left) to `columns`; never truncated.
std::string pad_right(std::string_view text, int columns);
std::string pad_left(std::string_view text, int columns);

/// The text wrapped to lines of at most `columns`; its own line breaks are kept.
std::vector<std::string> wrap(std::string_view text, int columns);

}  // namespace posenc::cli
