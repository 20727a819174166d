#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lessons/story_content.h"
#include "posenc/story.h"

namespace posenc::lessons {

/// Words, seats, base … of the reader's choice: what a source text says of its own is left out.
bool is_own(const StoryOptions& options);

/// Puts a story together: headings and prose come from its content, {names} in them from `say`.
class StoryBuilder {
 public:
  StoryBuilder(const StoryContent& content, const StoryOptions& options);

  /// The step of this id in the content; all that follows goes there.
  void step(std::string_view id);
  /// Adds the matrix, and a note where the text it follows has a wrong number. Returns it for what follows.
  StoryMatrix show(StoryMatrix matrix);
  void show(std::vector<StoryFact> facts);
  void formula(std::string text);
  /// The note of this id in the content.
  void note(std::string_view id);
  /// Adds a note where `printed_facts` has a different number.
  void compare(std::string_view fact, double value);
  /// What {name} becomes in headings, prose and notes.
  void say(std::string name, std::string text);
  void say(std::string name, double value, int digits = 3);

  /// Adds the errata, if any. Throws: Error for a {name} without a value.
  Story finish();

 private:
  std::string filled(const std::string& text) const;

  const StoryContent& content_;
  const StoryOptions& options_;
  Story story_;
  std::vector<std::pair<std::string, std::string>> said_;
  std::vector<Misprint> errata_;
};

StoryFact fact(std::string name, double value, int digits = 3);
/// A residual: two digits from the first that is not 0.
StoryFact residual(std::string name, double value);
StoryFact count(std::string name, std::int64_t value);
StoryFact check(std::string name, bool value);
StoryFact worded(std::string name, std::string value);

/// The cells of `matrix` that differ from the printed ones ("" for none).
std::vector<Misprint> misprints_of(const StoryMatrix& matrix, const std::vector<std::vector<std::string>>& printed);

}  // namespace posenc::lessons
