// Generates exercises from seeds, and grades answers.
#include "posenc/exercise.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lessons/exercise_content.h"
#include "posenc/error.h"

namespace posenc {
namespace lessons {
namespace {

// An exercise with few recognisable mistakes teaches little, so it is drawn again, a limited number of times.
constexpr std::size_t kFewestMistakes = 3;
constexpr int kMostDraws = 24;

double unit_of(int decimals, bool whole) { return whole ? 0.0 : std::pow(10.0, -decimals); }

// Whether no number is within `tolerance` of both. A count has a tolerance of 0.
bool can_be_told_apart(double one, double other, double tolerance) {
  return std::isfinite(one) && std::fabs(one - other) > 2 * tolerance;
}

void keep_telling_mistakes(Draft& draft) {
  const double tolerance = unit_of(draft.decimals, draft.whole);
  std::erase_if(draft.mistakes, [&](const Mistake& mistake) {
    return !can_be_told_apart(mistake.value, draft.answer, tolerance) ||
           (draft.whole && mistake.value != std::round(mistake.value));
  });
}

Draft best_draft(const ExerciseSource& source, std::uint64_t stream) {
  Random random(stream);
  Draft best;
  for (int i = 0; i < kMostDraws; ++i) {
    Draft draft = drafted(source, random);
    keep_telling_mistakes(draft);
    const bool enough = draft.mistakes.size() >= kFewestMistakes;
    if (i == 0 || enough || draft.mistakes.size() > best.mistakes.size()) best = std::move(draft);
    if (enough) break;
  }
  return best;
}

Exercise finished(const ExerciseSource& source, std::uint64_t seed, Draft best) {
  Exercise result;
  result.seed = seed;
  result.kind = source.kind.name;
  result.prompt = std::move(best.prompt);
  result.hint = std::move(best.hint);
  result.working = std::move(best.working);
  result.command = std::move(best.command);
  result.given = std::move(best.given);
  result.answer = best.answer;
  result.decimals = best.decimals;
  result.whole = best.whole;
  result.mistakes = std::move(best.mistakes);
  return result;
}

const ExerciseSource& source_of(std::string_view kind) {
  for (const ExerciseSource& source : exercise_sources()) {
    if (source.kind.name == kind) return source;
  }
  raise(fmt::format("exercise: there is no kind '{}'", kind));
}

struct Typed {
  double value = 0;
  int decimals = 0;
};

// How to read the comma of "98,688", which is ambiguous.
enum class Comma : std::uint8_t { kDecimal, kThousands };

// Whether commas separate groups of three digits, and the first group does not start with 0: 98,688 or 1,024.5.
bool is_grouped(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::string_view whole = text.substr(0, text.find_first_of(".eE"));
  if (whole.find(',') == std::string_view::npos || whole.starts_with('0')) return false;
  std::size_t digits = 0;
  bool is_first = true;
  for (const char c : whole) {
    if (c != ',') {
      ++digits;
      continue;
    }
    if (digits == 0 || digits > 3 || (!is_first && digits != 3)) return false;
    is_first = false;
    digits = 0;
  }
  return digits == 3;
}

// Accepts surrounding spaces, a Unicode minus sign and a decimal comma; anything else must be a number.
std::optional<Typed> typed_number(std::string_view given, Comma comma = Comma::kDecimal) {
  std::string text;
  while (given.starts_with(' ') || given.starts_with('\t')) given.remove_prefix(1);
  while (given.ends_with(' ') || given.ends_with('\t') || given.ends_with('\r')) given.remove_suffix(1);
  constexpr std::string_view kMinus = "\u2212";
  if (given.starts_with(kMinus)) {
    text = "-";
    given.remove_prefix(kMinus.size());
  } else if (given.starts_with('+')) {
    given.remove_prefix(1);
    if (given.starts_with('-')) return std::nullopt;
  }
  text += given;
  if (comma == Comma::kThousands) {
    if (!is_grouped(text)) return std::nullopt;
    std::erase(text, ',');
  }
  const bool has_comma = std::count(text.begin(), text.end(), ',') == 1 && text.find('.') == std::string::npos;
  if (has_comma) text[text.find(',')] = '.';
  Typed typed;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), typed.value);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size() || !std::isfinite(typed.value)) {
    return std::nullopt;
  }
  const std::size_t exponent = text.find_first_of("eE");
  const std::size_t point = text.find('.');
  if (point != std::string::npos) {
    typed.decimals = static_cast<int>(std::min(exponent, text.size()) - point) - 1;
  }
  if (exponent != std::string::npos) typed.decimals = 1000;  // scientific notation never counts as too few digits
  return typed;
}

}  // namespace

}  // namespace lessons

std::span<const ExerciseKind> exercise_kinds() {
  static const std::vector<ExerciseKind> kList = [] {
    std::vector<ExerciseKind> list;
    for (const auto& source : lessons::exercise_sources()) list.push_back(source.kind);
    return list;
  }();
  return kList;
}

Exercise exercise(std::string_view kind, std::uint64_t seed) {
  const auto& source = lessons::source_of(kind);
  // Each kind has its own random stream, so that kinds are independent.
  std::uint64_t stream = seed;
  for (const char c : kind) stream = Random(stream ^ static_cast<unsigned char>(c)).next();
  return lessons::finished(source, seed, lessons::best_draft(source, stream));
}

Exercise exercise(std::string_view kind, const ExerciseVariables& variables) {
  const auto& source = lessons::source_of(kind);
  Random random(0);
  lessons::Draft draft = lessons::drafted(source, random, variables);
  lessons::keep_telling_mistakes(draft);
  return lessons::finished(source, 0, std::move(draft));
}

Exercise exercise(std::uint64_t seed) {
  const auto& sources = lessons::exercise_sources();
  const std::int64_t which = Random(seed).below(static_cast<std::int64_t>(sources.size()));
  return exercise(sources[which].kind.name, seed);
}

double tolerance_of(const Exercise& exercise) { return lessons::unit_of(exercise.decimals, exercise.whole); }

Grade grade(const Exercise& exercise, double typed) {
  // Widened by 1e-9, so that a number on the edge is inside.
  const double tolerance = tolerance_of(exercise) * (1 + 1e-9);
  if (std::fabs(typed - exercise.answer) <= tolerance) return {Mark::kRight};
  Grade result;
  for (std::size_t i = 0; i < exercise.mistakes.size(); ++i) {
    if (std::fabs(typed - exercise.mistakes[i].value) <= tolerance) result.mistakes.push_back(i);
  }
  if (!result.mistakes.empty()) result.verdict = Mark::kKnownMistake;
  return result;
}

Grade grade(const Exercise& exercise, std::string_view typed) {
  const auto thousands = lessons::typed_number(typed, lessons::Comma::kThousands);
  auto number = lessons::typed_number(typed);
  // A count has no decimals, so its comma separates thousands; otherwise, the reading that is correct counts.
  if (thousands && (exercise.whole || !number || grade(exercise, thousands->value).verdict == Mark::kRight)) {
    number = thousands;
  }
  if (!number) return {Mark::kNotANumber};
  Grade result = grade(exercise, number->value);
  if (exercise.whole || number->decimals >= exercise.decimals || result.verdict != Mark::kWrong) return result;
  // Correct, but rounded too early: 0.8 for 0.841.
  const double half_unit = 0.5 * std::pow(10.0, -number->decimals);
  if (std::fabs(number->value - exercise.answer) <= half_unit * (1 + 1e-9)) return {Mark::kTooFewDigits};
  return result;
}

std::string shown_answer(const Exercise& exercise) {
  std::string text = fmt::format("{:.{}f}", exercise.answer, exercise.decimals);
  if (text.starts_with('-') && text.find_first_not_of("-0.") == std::string::npos) text.erase(0, 1);
  return text;
}

}  // namespace posenc
