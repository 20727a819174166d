#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/exercise.h"
#include "posenc/json.h"
#include "posenc/random.h"

namespace posenc::lessons {

/// An exercise whose mistakes have not been checked yet: some may be indistinguishable from the answer.
struct Draft {
  std::string prompt = {}, hint = {}, working = {}, command = {};
  std::vector<std::pair<std::string, double>> given = {};
  double answer = 0;
  int decimals = 3;
  bool whole = false;
  std::vector<Mistake> mistakes = {};
};

/// A kind of exercise in content/exercises; docs/decisions/0010-lessons.md describes the format.
struct ExerciseSource {
  ExerciseKind kind;
  std::string where;           // "exercises/rope.json: rope-turn", for messages
  const Json* text = nullptr;  // lives as long as the program
};

/// All kinds, ordered by topic. Throws: Error for malformed content.
const std::vector<ExerciseSource>& exercise_sources();

/// Draws the variables of a kind, except those in `fixed`, and fills in its texts. Throws: Error "formula: …" or
/// "content: …" for content that does not evaluate, or if `fixed` has a variable that the kind does not.
Draft drafted(const ExerciseSource& source, Random& random, const ExerciseVariables& fixed = {});

}  // namespace posenc::lessons
