#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::lessons {

/// Splits a sentence into words. Throws: Error unless it has 2 to 12 words of at most 24 characters each, in UTF-8
/// and without control characters.
std::vector<std::string> own_words(std::string_view text);

/// The words, with numbers that make repeated ones unique: "the", "the.2".
std::vector<std::string> unique_labels(const std::vector<std::string>& words);

/// A unit vector for each word, which depends only on its letters.
std::vector<double> rows_of_words(const std::vector<std::string>& words, std::int64_t width);

}  // namespace posenc::lessons
