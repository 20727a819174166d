#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lessons/story_content.h"
#include "posenc/story.h"

namespace posenc::lessons {

/// Whether the reader chose the words, seats, base and so on. If so, comparisons with the source text are omitted.
bool is_own(const StoryOptions& options);

/// Builds a story: headings and prose come from its content, and `say` sets the {names} in them.
class StoryBuilder {
 public:
  StoryBuilder(const StoryContent& content, const StoryOptions& options);

  /// Starts the step with this id; everything added later belongs to it.
  void step(std::string_view id);
  /// Adds the matrix, and a note if the source text printed a wrong number in it. Returns the matrix.
  StoryMatrix show(StoryMatrix matrix);
  void show(std::vector<StoryFact> facts);
  void formula(std::string text);
  /// Adds the note with this id.
  void note(std::string_view id);
  /// Adds a note if `printed_facts` has a different number.
  void compare(std::string_view fact, double value);
  /// Sets what replaces {name} in headings, prose and notes.
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
/// A residual, shown with two significant digits.
StoryFact residual(std::string name, double value);
StoryFact count(std::string name, std::int64_t value);
StoryFact check(std::string name, bool value);
StoryFact worded(std::string name, std::string value);

/// The cells of `matrix` that differ from the printed ones; "": not printed.
std::vector<Misprint> misprints_of(const StoryMatrix& matrix, const std::vector<std::vector<std::string>>& printed);

}  // namespace posenc::lessons
