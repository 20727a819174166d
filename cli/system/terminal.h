#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posenc::cli {

/// Columns of the terminal that standard output is, or 100 where it is none.
int output_columns();
/// When to print in colour: where a terminal wants it, or as the user says.
enum class Colour { kAuto, kAlways, kNever };
void set_colour(Colour colour);
/// Whether this descriptor wants colour: as set_colour() says, else a terminal that is not dumb, and NO_COLOR is not
/// set.
bool wants_colour(int descriptor);

/// Bold or dim where `colour` says so, else the text as it is.
std::string bold(std::string_view text, bool colour);
std::string dim(std::string_view text, bool colour);

/// How many columns a UTF-8 text takes; one for each code point, which is true of all that we print.
int columns_of(std::string_view text);
/// Filled with spaces on the right (or left) up to `columns`; never cut.
std::string pad_right(std::string_view text, int columns);
std::string pad_left(std::string_view text, int columns);

/// The text's words in lines of at most `columns`; its own line breaks are kept.
std::vector<std::string> wrap(std::string_view text, int columns);

}  // namespace posenc::cli
