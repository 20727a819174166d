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
  std::string because;  ///< what was done, and what is correct, in one sentence
  double value = 0;
};

/// A question whose answer is a number, generated from a seed: the same seed always gives the same exercise.
struct Exercise {
  std::uint64_t seed = 0;
  std::string kind;  ///< one of exercise_kinds()
  std::string prompt;
  std::string hint;
  std::string working;                                     ///< how the answer is computed, in a line or two
  std::string command;                                     ///< the posenc command that prints it; may be empty
  std::vector<std::pair<std::string, double>> given = {};  ///< the numbers in the prompt, by name
  double answer = 0;
  int decimals = 0;  ///< how many are asked for; 0 with `whole`: the answer is a count
  bool whole = false;
  std::vector<Mistake> mistakes = {};  ///< those whose number differs from the answer
};

struct ExerciseKind {
  std::string_view name;   ///< "pe-value"
  std::string_view title;  ///< "a value of the sinusoidal table"
  std::string_view topic;  ///< "sinusoidal"
};
std::span<const ExerciseKind> exercise_kinds();

/// The exercise generated from this seed, of any kind or of the given kind.
/// Throws: Error for an unknown kind.
Exercise exercise(std::uint64_t seed);
Exercise exercise(std::string_view kind, std::uint64_t seed);

/// The exercise of a kind with these variables instead of random ones: {"width", 4}, {"position", 1} … The others are
/// drawn from seed 0.
/// Throws: Error for an unknown kind or variable.
using ExerciseVariables = std::vector<std::pair<std::string, double>>;
Exercise exercise(std::string_view kind, const ExerciseVariables& variables);

enum class Mark : std::uint8_t {
  kRight,
  kTooFewDigits,  ///< right, but with fewer decimals than asked for
  kKnownMistake,  ///< wrong, but the number of a known mistake
  kWrong,
  kNotANumber,
};

/// The grade of an answer. `mistakes` are indices: several mistakes may produce the same number.
struct Grade {
  Mark verdict = Mark::kWrong;
  std::vector<std::size_t> mistakes = {};
};

/// How far from the answer a number may be to count as right: one unit in the last place asked for, so that rounded and
/// truncated answers pass, and those with a rounded intermediate step. 0 for a count.
double tolerance_of(const Exercise& exercise);

Grade grade(const Exercise& exercise, double typed);
/// The answer as text: 0.841, .841, 0,841, −0.5, 1e-3, 98,688. A comma before three digits may be a decimal comma or a
/// thousands separator; either reading is accepted if it is correct.
Grade grade(const Exercise& exercise, std::string_view typed);

/// The right answer, as it should be typed.
std::string shown_answer(const Exercise& exercise);

}  // namespace posenc
