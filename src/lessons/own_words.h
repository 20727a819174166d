#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::lessons {

/// The words of a sentence. Throws: Error unless it is 2 to 12 words of at most 24 characters each, UTF-8 and free of
/// control characters.
std::vector<std::string> own_words(std::string_view text);

/// The same with a number behind repeated ones, "the", "the.2", so that each has a name.
std::vector<std::string> unique_labels(const std::vector<std::string>& words);

/// A row of length 1 for each word, made from its letters alone.
std::vector<double> rows_of_words(const std::vector<std::string>& words, std::int64_t width);

}  // namespace posenc::lessons
