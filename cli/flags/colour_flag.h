#pragma once

#include <string>
#include <vector>

namespace posenc::cli {

/// Removes --color WHEN (auto, always or never) from the words, wherever it is, and applies it.
/// Throws: Failure for another word.
void take_colour(std::vector<std::string>& arguments);

}  // namespace posenc::cli
