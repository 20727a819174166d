#pragma once

#include <string>
#include <vector>

namespace posenc::cli {

/// The body of `main`: catches signals, calls `run` with the words after the program's name, and turns any error into one
/// line on stderr and an exit status (failure.h), which it returns.
int run_main(int count, char** words, int (*run)(std::vector<std::string> arguments));

}  // namespace posenc::cli
