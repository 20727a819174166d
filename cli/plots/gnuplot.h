#pragma once

#include <string>
#include <string_view>

namespace posenc::cli {

/// The path of gnuplot, or "" where it is not installed. Only absolute folders of PATH are looked at.
std::string gnuplot_path();

/// What gnuplot writes to standard output for a script, which it reads from a pipe: no shell, no file, none of the
/// user's settings.
/// Throws: Failure 3 where gnuplot is missing, fails, or takes longer than a minute.
std::string run_gnuplot(std::string_view script);

}  // namespace posenc::cli
