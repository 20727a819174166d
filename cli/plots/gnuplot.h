#pragma once

#include <string>
#include <string_view>

namespace posenc::cli {

/// The path of gnuplot, or "" if it is not installed. Only absolute folders in PATH are searched.
std::string gnuplot_path();

/// The standard output of gnuplot for a script, which it reads from a pipe: no shell, no file, none of the user's
/// settings.
/// Throws: Failure 3 if gnuplot is missing, fails, or takes longer than a minute.
std::string run_gnuplot(std::string_view script);

}  // namespace posenc::cli
