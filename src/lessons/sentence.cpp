#include <span>
#include <string>
#include <vector>

#include "lessons/own_words.h"
#include "lessons/story_matrices.h"
#include "posenc/apply.h"
#include "posenc/scheme.h"
#include "posenc/story.h"

namespace posenc {

SentenceScores sentence_scores(std::string_view text, bool with_positions) {
  constexpr std::int64_t kWidth = 8;  // "text_width" of dog-bites-man
  const std::vector<std::string> words = lessons::own_words(text);
  const auto count = static_cast<std::int64_t>(words.size());
  std::vector<double> rows = lessons::rows_of_words(words, kWidth);
  if (with_positions) add(view(rows.data(), {count, kWidth}), {}, prepare(Sinusoidal{.width = kWidth}));
  const auto row = [&](std::int64_t index) { return std::span<const double>(rows.data() + index * kWidth, kWidth); };
  SentenceScores result{.words = lessons::unique_labels(words), .scores = {}};
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < count; ++j) result.scores.push_back(lessons::dot(row(i), row(j)));
  }
  return result;
}

}  // namespace posenc
