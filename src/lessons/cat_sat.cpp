#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc::lessons {
namespace {

// How much the steps between neighbouring rows differ from each other: 0 where they are one vector for all.
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

StoryMatrix lines(MatrixLabels labels, const Addition& form, const std::vector<std::int64_t>& positions,
                  std::string formula) {
  std::vector<double> values(labels.rows.size() * labels.columns.size());
  const auto rows = static_cast<std::int64_t>(labels.rows.size());
  tabulate(view(values.data(), {rows, form.width}), {.ids = positions}, form);
  return measured(std::move(labels), std::move(values), std::move(formula));
}

}  // namespace

Story tell_cat_sat(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const std::vector<std::string> words = content.texts("words");
  const Sinusoidal scheme{.width = content.integer("width")};
  const std::vector<std::string> features = numbered("d", static_cast<std::size_t>(scheme.width));
  std::vector<std::int64_t> positions(words.size());
  std::iota(positions.begin(), positions.end(), content.integer("first_position"));

  story.step("words");
  const StoryMatrix x = story.show(given({"X", "X: one row for each word", words, features}, content.table("x")));

  story.step("positions");
  const std::vector<double> frequencies = frequencies_of(scheme);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    story.say(fmt::format("frequency{}", i), fmt::format("{:.6g}", frequencies[i]));
  }
  story.formula(fmt::format("P(p, 2i) = sin(p · ω_i),  P(p, 2i+1) = cos(p · ω_i),  ω_i = {}^(−2i/{})", scheme.base,
                            scheme.width));
  const StoryMatrix p =
      story.show(waves({"P", "P: one row for each position", as_labels(positions), features}, scheme, positions));

  story.step("sum");
  const StoryMatrix sum = story.show(added({"X'", "X' = X + P", words, features}, x, p, scheme, positions));

  story.step("moved");
  const std::string moved = content.text("moved");
  const auto found = std::find(words.begin(), words.end(), moved);
  if (found == words.end()) raise(fmt::format("content: stories/{}.json: '{}' is no word", content.name(), moved));
  const auto word = static_cast<std::size_t>(found - words.begin());
  story.say("word", moved);
  std::vector<double> elsewhere;
  std::vector<std::string> places;
  for (std::size_t row = 0; row < positions.size(); ++row) {
    places.push_back(fmt::format("{}@{}", moved, positions[row]));
    for (std::size_t i = 0; i < features.size(); ++i) elsewhere.push_back(x.at(word, i) + p.at(row, i));
  }
  const StoryMatrix all =
      story.show(measured({"E", fmt::format("E: \"{}\" at each position", moved), places, features}, elsewhere,
                          fmt::format("X[{}] + P", moved)));
  story.show({fact(fmt::format("‖{} − {}‖", places[0], places[1]), row_distance(all, 0, 1)),
              fact(fmt::format("‖{} − {}‖", places[0], places[2]), row_distance(all, 0, 2))});

  story.step("steps");
  const Steps tiny{.width = scheme.width, .step = content.number("step")};
  const StoryMatrix counted =
      lines({"B", "B: tiny steps", as_labels(positions), features}, prepare(tiny), positions, "step · position");
  StoryMatrix shown = counted;
  shown.digits = 4;
  story.show(shown);
  story.say("step", fmt::format("{}", tiny.step));
  story.say("width", std::to_string(scheme.width));
  story.say("ratio", fmt::format("{:.2g}", largest_size(counted) / mean_size(x)));
  story.show({residual("largest signal / mean size of X", largest_size(counted) / mean_size(x)),
              residual("the same for sinusoids", largest_size(p) / mean_size(x))});

  story.step("shift");
  const Shift constant{.width = scheme.width, .step = content.number("shift"), .seed = content.integer("shift_seed")};
  const StoryMatrix shifted =
      story.show(lines({"C", "C: random start, constant shift", as_labels(positions), features}, prepare(constant),
                       positions, "start + step · position"));
  story.show({residual("steps between neighbours differ by, at most", unevenness(shifted)),
              residual("the same for sinusoids", unevenness(p))});
  return story.finish();
}

}  // namespace posenc::lessons
