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

/// An exercise before it is known which mistakes can be told from the answer.
struct Draft {
  std::string prompt = {}, hint = {}, working = {}, command = {};
  std::vector<std::pair<std::string, double>> given = {};
  double answer = 0;
  int decimals = 3;
  bool whole = false;
  std::vector<Mistake> mistakes = {};
};

/// A kind of exercise as content/exercises describes it; docs/decisions/0010-lessons.md has the format.
struct ExerciseSource {
  ExerciseKind kind;
  std::string where;           // "exercises/rope.json: rope-turn", for messages
  const Json* text = nullptr;  // lives as long as the program
};

/// Every kind, topic by topic. Throws: Error for content that is malformed.
const std::vector<ExerciseSource>& exercise_sources();

/// Draws the variables of a kind, except those that are fixed, and fills its texts. Throws: Error "formula: …" or
/// "content: …" for content that does not evaluate, or for a fixed variable that the kind does not have.
Draft drafted(const ExerciseSource& source, Random& random, const ExerciseVariables& fixed = {});

}  // namespace posenc::lessons
