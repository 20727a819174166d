#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc::lessons {
namespace {

// How much the differences between adjacent rows vary: 0 if all are the same vector.
double unevenness(const StoryMatrix& p) {
  double largest = 0;
  for (std::size_t row = 2; row < p.rows.size(); ++row) {
    for (std::size_t i = 0; i < p.columns.size(); ++i) {
      const double step = p.at(row, i) - p.at(row - 1, i);
      const double before = p.at(row - 1, i) - p.at(row - 2, i);
      largest = std::max(largest, std::fabs(step - before));
    }
  }
  return largest;
}

double mean_size(const StoryMatrix& x) {
  const auto add_size = [](double sum, double value) { return sum + std::fabs(value); };
  return std::accumulate(x.values.begin(), x.values.end(), 0.0, add_size) / static_cast<double>(x.values.size());
}

double largest_size(const StoryMatrix& x) {
  double largest = 0;
  for (const double value : x.values) largest = std::max(largest, std::fabs(value));
  return largest;
}

// start + step · position for every feature, computed by the library, with terms for each cell.
StoryMatrix ramp(MatrixLabels labels, const Lines& lines, const std::vector<std::int64_t>& positions) {
  std::vector<double> values(labels.rows.size() * labels.columns.size());
  const Addition form{static_cast<std::int64_t>(labels.columns.size()), lines};
  tabulate(view(values.data(), {static_cast<std::int64_t>(labels.rows.size()), form.width}), {.ids = positions},
           form);
  std::vector<CellTerms> cells;
  for (const std::int64_t position : positions) {
    for (std::size_t i = 0; i < labels.columns.size(); ++i) {
      cells.push_back({"start + step · position",
                       {{{fmt::format("start{}", i), lines.start[i]}},
                        {{"step", lines.step[i]}, {"position", static_cast<double>(position)}}}});
    }
  }
  return computed(std::move(labels), std::move(values), std::move(cells));
}

// A position as binary digits, the first feature the last digit, and how many change from one position to the next.
void show_digits(StoryBuilder& story, const std::vector<std::int64_t>& positions, std::int64_t width) {
  const auto digits_of = [width](std::int64_t position) {
    std::string digits;
    for (std::int64_t i = 0; i < width; ++i) digits += (position >> i & 1) != 0 ? '1' : '0';
    return digits;
  };
  std::vector<StoryFact> facts;
  for (const std::int64_t position : positions) {
    facts.push_back(worded(fmt::format("digits of position {}, the last one first", position), digits_of(position)));
  }
  std::vector<std::int64_t> changes;
  for (std::size_t i = 1; i < positions.size(); ++i) {
    const std::string before = digits_of(positions[i - 1]), after = digits_of(positions[i]);
    changes.push_back(std::inner_product(before.begin(), before.end(), after.begin(), std::int64_t{0}, std::plus<>(),
                                         std::not_equal_to<>()));
    facts.push_back(
        count(fmt::format("digits that change from {} to {}", positions[i - 1], positions[i]), changes.back()));
  }
  story.say("before", std::to_string(positions[0]));
  story.say("at", std::to_string(positions[1]));
  story.say("after", std::to_string(positions[2]));
  story.say("jump", std::to_string(changes[0]));
  story.say("hop", std::to_string(changes[1]));
  story.show(std::move(facts));
}

}  // namespace

Story tell_cat_sat(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const std::vector<std::string> words = content.texts("words");
  const Sinusoidal scheme{.width = content.integer("width")};
  const std::vector<std::string> features = numbered("d", scheme.width);
  std::vector<std::int64_t> positions(words.size());
  std::iota(positions.begin(), positions.end(), content.integer("first_position"));

  story.step("words");
  const StoryMatrix x = story.show(given({"X", "X: one row per word", words, features}, content.table("x")));

  const StoryMatrix p = waves({"P", "P: one row per position", as_labels(positions), features}, scheme, positions);
  story.step("steps");
  const Steps tiny{.width = scheme.width, .step = content.number("step")};
  const StoryMatrix counted =
      ramp({"B", "B: tiny steps", as_labels(positions), features}, std::get<Lines>(prepare(tiny).source), positions);
  StoryMatrix shown = counted;
  shown.digits = 4;
  story.show(shown);
  story.say("step", fmt::format("{}", tiny.step));
  story.say("width", std::to_string(scheme.width));
  story.say("ratio", fmt::format("{:.2g}", largest_size(counted) / mean_size(x)));
  const std::int64_t far = content.integer("far");
  story.say("far", std::to_string(far));
  story.show(
      {residual("largest |B| / mean |X|", largest_size(counted) / mean_size(x)),
       fact(fmt::format("the same with steps of 1, at position {}", far), static_cast<double>(far) / mean_size(x), 0),
       residual("largest |P| / mean |X|", largest_size(p) / mean_size(x))});

  story.step("shift");
  const std::vector<double> start = options.start.empty() ? content.numbers("shift_start") : options.start;
  if (start.size() != features.size()) {
    raise(fmt::format("story: --start has {} numbers; {} needs {}", start.size(), content.name(), features.size()));
  }
  const StoryMatrix shifted =
      story.show(ramp({"C", "C: a given start, a constant step", as_labels(positions), features},
                      {start, std::vector<double>(start.size(), content.number("shift"))}, positions));
  story.show({residual("differences between adjacent rows of C vary by", unevenness(shifted)),
              residual("differences between adjacent rows of P vary by", unevenness(p))});

  story.step("binary");
  show_digits(story, content.integers("counter"), scheme.width);

  story.step("positions");
  const std::vector<double> frequencies = frequencies_of(scheme);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    story.say(fmt::format("frequency{}", i), fmt::format("{:.6g}", frequencies[i]));
  }
  story.formula(fmt::format("P(p, 2i) = sin(p · ω_i),  P(p, 2i+1) = cos(p · ω_i),  ω_i = {}^(−2i/{})", scheme.base,
                            scheme.width));
  story.show(p);

  story.step("sum");
  const StoryMatrix sum = story.show(added({"X'", "X' = X + P", words, features}, x, p, scheme, positions));

  story.step("moved");
  const std::string moved = content.text("moved");
  const auto found = std::find(words.begin(), words.end(), moved);
  if (found == words.end()) raise(fmt::format("content: stories/{}.json: '{}' is no word", content.name(), moved));
  const std::size_t word = found - words.begin();
  story.say("word", moved);
  std::vector<CellTerms> elsewhere;
  std::vector<std::string> places;
  for (std::size_t row = 0; row < positions.size(); ++row) {
    places.push_back(fmt::format("{}@{}", moved, positions[row]));
    for (std::size_t i = 0; i < features.size(); ++i) {
      elsewhere.push_back({fmt::format("X[{}] + P", moved), {{cell_factor(x, word, i)}, {cell_factor(p, row, i)}}});
    }
  }
  const StoryMatrix all =
      story.show(computed({"E", fmt::format("E: \"{}\" at each position", moved), places, features}, elsewhere));
  story.show({fact(fmt::format("‖{} − {}‖", places[0], places[1]), row_distance(all, 0, 1)),
              fact(fmt::format("‖{} − {}‖", places[0], places[2]), row_distance(all, 0, 2))});
  return story.finish();
}

}  // namespace posenc::lessons
