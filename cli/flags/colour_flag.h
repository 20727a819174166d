#pragma once

#include <string>
#include <vector>

namespace posenc::cli {

/// Takes --color WHEN (auto, always or never) out of the words, wherever it is, and does what it says.
/// Throws: Failure for another word.
void take_colour(std::vector<std::string>& arguments);

}  // namespace posenc::cli
