#include "lessons/own_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <utf8/unchecked.h>

#include "lessons/story_matrices.h"
#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/scheme.h"

namespace posenc::lessons {
namespace {

constexpr std::size_t kFewestWords = 2, kMostWords = 12, kLongestWord = 24;

// Counts characters; rejects characters that a terminal cannot show safely.
std::size_t checked_length(std::string_view word) {
  if (!utf8::is_valid(word.begin(), word.end())) raise("text: is not UTF-8");
  std::size_t length = 0;
  for (const char* at = word.data(); at != word.data() + word.size(); ++length) {
    const std::uint32_t code = utf8::unchecked::next(at);
    if (code < 0x20 || (code >= 0x7F && code < 0xA0)) raise("text: holds a control character");
  }
  return length;
}

// FNV-1a: the same hash on every platform.
std::uint64_t hash_of(std::string_view word) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const char letter : word) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  return hash;
}

}  // namespace

std::vector<std::string> own_words(std::string_view text) {
  std::vector<std::string> words;
  constexpr std::string_view kSpace = " \t\r\n";
  while (true) {
    const std::size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(kSpace));
    if (checked_length(word) > kLongestWord) {
      raise(fmt::format("text: a word may have at most {} characters", kLongestWord));
    }
    words.emplace_back(word);
    text.remove_prefix(word.size());
    if (words.size() > kMostWords) break;
  }
  if (words.size() < kFewestWords || words.size() > kMostWords) {
    raise(fmt::format("text: needs {} to {} words", kFewestWords, kMostWords));
  }
  return words;
}

std::vector<std::string> unique_labels(const std::vector<std::string>& words) {
  std::vector<std::string> labels;
  for (const std::string& word : words) {
    std::string label = word;
    for (int number = 2; std::find(labels.begin(), labels.end(), label) != labels.end(); ++number) {
      label = fmt::format("{}.{}", word, number);
    }
    labels.push_back(std::move(label));
  }
  return labels;
}

std::vector<double> rows_of_words(const std::vector<std::string>& words, std::int64_t width) {
  std::vector<double> rows;
  for (const std::string& word : words) {
    std::vector<double> row(width);
    const Shift noise{.width = width, .step = 0.0, .seed = static_cast<std::int64_t>(hash_of(word) >> 1U)};
    tabulate(view(row.data(), {1, width}), {}, prepare(noise));
    const double length = std::sqrt(dot(row, row));
    for (double& value : row) value /= length;
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

}  // namespace posenc::lessons
