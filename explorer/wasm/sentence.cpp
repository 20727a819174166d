// A sentence as attention compares its words.

#include <cstring>

#include "explorer/wasm/call.h"
#include "posenc/story.h"

namespace posenc::page {

Answer sentence(const Question& question) {
  const SentenceScores made = sentence_scores(text(question.fields, "text"), flag(question.fields, "positions"));
  Answer answer;
  Json::Array words;
  for (const std::string& word : made.words) words.emplace_back(word);
  answer.json = Json::Object{{"words", std::move(words)}};
  answer.bytes.resize(made.scores.size() * sizeof(double));
  std::memcpy(answer.bytes.data(), made.scores.data(), answer.bytes.size());
  return answer;
}

}  // namespace posenc::page
