#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posenc {

/// One of the answers to choose from. `because` says why it is right, or what is wrong with it.
struct AnswerChoice {
  std::string text;
  std::string because;
  bool right = false;
};

/// A question from content/questions. The numbers in its texts are computed; `code` is in backquotes.
struct Question {
  std::string id;     ///< never changes: progress is stored under it
  std::string topic;  ///< the file it is in, such as "rope"
  std::vector<std::string> tags;
  std::string prompt;
  std::vector<AnswerChoice> choices;  ///< empty: an open question; otherwise exactly one is right
  std::string answer;
  std::string hint;
  std::string source;  ///< further reading: paper and section
};

/// A flash card from content/cards.
struct Card {
  std::string id;
  std::string topic;
  std::vector<std::string> tags;
  std::string front;
  std::string back;
  std::string tex;     ///< the formula of the back in TeX, for programs that typeset it; often empty
  std::string source;  ///< further reading: paper and section
};

/// All of them in the order of learning: file by file, as listed in content/topics.json.
/// Throws: Error that names file and id, for malformed content.
std::vector<Question> questions();
std::vector<Card> cards();

/// "vaswani-2017 §3.5" → "Vaswani et al. 2017, Attention Is All You Need, §3.5": a key of content/sources.json, and
/// what follows it.
/// Throws: Error for an unknown key.
std::string citation(std::string_view source);

}  // namespace posenc
