#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace posenc {

/// A common mistake, and the number it produces.
struct Mistake {
  std::string name;     ///< "i for 2i"
  std::string because;  ///< what was done and what is right, one sentence
  double value = 0;
};

/// A question with a number for an answer, made from a seed: the same seed always gives the same exercise.
struct Exercise {
  std::uint64_t seed = 0;
  std::string kind;  ///< one of exercise_kinds()
  std::string prompt;
  std::string hint;
  std::string working;                                     ///< how the answer is computed, in a line or two
  std::string command;                                     ///< the posenc command that prints it; may be empty
  std::vector<std::pair<std::string, double>> given = {};  ///< the numbers in the prompt, by name
  double answer = 0;
  int decimals = 0;  ///< asked for; 0 with `whole`: a count
  bool whole = false;
  std::vector<Mistake> mistakes = {};  ///< those with a different number than the answer
};

struct ExerciseKind {
  std::string_view name;   ///< "pe-value"
  std::string_view title;  ///< "a value of the sinusoidal table"
  std::string_view topic;  ///< "sinusoidal"
};
std::span<const ExerciseKind> exercise_kinds();

/// The exercise of this seed, of any kind, or of the one named.
/// Throws: Error for a kind that is not there.
Exercise exercise(std::uint64_t seed);
Exercise exercise(std::string_view kind, std::uint64_t seed);

/// The exercise of a kind with these variables instead of drawn ones: {"width", 4}, {"position", 1} … The others are
/// drawn from seed 0.
/// Throws: Error for a kind or a variable that is not there.
using ExerciseVariables = std::vector<std::pair<std::string, double>>;
Exercise exercise(std::string_view kind, const ExerciseVariables& variables);

enum class Mark : std::uint8_t {
  kRight,
  kTooFewDigits,  ///< right, but with fewer decimals than asked for
  kKnownMistake,  ///< wrong, with a known mistake
  kWrong,
  kNotANumber,
};

/// The grade of an answer. `mistakes` are indices: several mistakes may produce the same number.
struct Grade {
  Mark verdict = Mark::kWrong;
  std::vector<std::size_t> mistakes = {};
};

/// How far from the answer still counts: one unit of the last place asked for, so that rounding, cutting off and
/// a rounded step on the way all pass; nothing for a count.
double tolerance_of(const Exercise& exercise);

Grade grade(const Exercise& exercise, double typed);
/// As typed: 0.841, .841, 0,841, −0.5, 1e-3, 98,688. A comma before three digits may be a decimal comma or a thousands
/// separator; the reading that is right counts.
Grade grade(const Exercise& exercise, std::string_view typed);

/// The answer as it should have been typed.
std::string shown_answer(const Exercise& exercise);

}  // namespace posenc
