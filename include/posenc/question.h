#pragma once

#include <string>
#include <vector>

namespace posenc {

/// One of the answers to choose from. `because` says why it is right or what is wrong with it.
struct AnswerChoice {
  std::string text;
  std::string because;
  bool right = false;
};

/// A question of content/questions. Numbers in its texts have been computed. `code` stands in backquotes.
struct Question {
  std::string id;     ///< stable for ever: progress is kept under it
  std::string topic;  ///< the file it is in, such as "rope"
  std::vector<std::string> tags;
  std::string prompt;
  std::vector<AnswerChoice> choices;  ///< none: an open question; else exactly one is right
  std::string answer;                 ///< what is to be known
  std::string hint;
};

/// A flash card of content/cards.
struct Card {
  std::string id;
  std::string topic;
  std::vector<std::string> tags;
  std::string front;
  std::string back;
  std::string tex;  ///< the formula of the back in TeX, for those who can set it; often empty
};

/// All of them in the order of learning: file by file, as content/topics.json lists them.
/// Throws: Error for content that is malformed, with file and id.
std::vector<Question> questions();
std::vector<Card> cards();

}  // namespace posenc
