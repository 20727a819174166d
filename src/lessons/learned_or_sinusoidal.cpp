#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"
#include "posenc/apply.h"

namespace posenc::lessons {
namespace {

struct Learning {
  Learned scheme;
  std::vector<double> table;

  TensorView view_of_table() { return view(table.data(), {scheme.rows, scheme.width}); }
  Addition form() { return prepare(scheme, {.weights = view_of_table()}); }
};

Learning untrained(const StoryContent& content) {
  Learning result;
  result.scheme = {.rows = content.integer("rows"), .width = content.integer("width")};
  result.table.resize(static_cast<std::size_t>(result.scheme.rows * result.scheme.width));
  // one long random row is as good as many
  const auto size = static_cast<std::int64_t>(result.table.size());
  const Shift noise{.width = size, .step = 0.0, .seed = content.integer("seed")};
  tabulate(view(result.table.data(), {1, size}), {}, prepare(noise));
  for (double& value : result.table) value *= content.number("noise");
  return result;
}

StoryMatrix rows_at(MatrixLabels labels, const Addition& form, const std::vector<std::int64_t>& positions,
                    std::string formula) {
  std::vector<double> values(positions.size() * labels.columns.size());
  tabulate(view(values.data(), {static_cast<std::int64_t>(positions.size()), form.width}), {.ids = positions}, form);
  return measured(std::move(labels), std::move(values), std::move(formula));
}

struct Neighbours {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = -std::numeric_limits<double>::infinity();
};

Neighbours products_of_neighbours(const StoryMatrix& rows) {
  Neighbours result;
  for (std::size_t row = 1; row < rows.rows.size(); ++row) {
    const double value = dot(row_of(rows, row - 1), row_of(rows, row));
    result.smallest = std::min(result.smallest, value);
    result.largest = std::max(result.largest, value);
  }
  return result;
}

// One step down the gradient of ½ ‖x + E − target‖². Gives the gradient, [rows, width].
std::vector<double> train_once(Learning& learning, const StoryContent& content, const StoryMatrix& x) {
  const Extents shape = {static_cast<std::int64_t>(x.rows.size()), learning.scheme.width};
  const std::vector<double> target = content.table("target");
  std::vector<double> difference(x.values.size());
  add(view(difference.data(), shape), view(x.values.data(), shape), {}, learning.form());
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= target[i];
  std::vector<double> gradient(learning.table.size());
  add_backward(view(gradient.data(), {learning.scheme.rows, learning.scheme.width}),
               view(static_cast<const double*>(difference.data()), shape), {});
  for (std::size_t i = 0; i < gradient.size(); ++i) learning.table[i] -= content.number("rate") * gradient[i];
  return gradient;
}

}  // namespace

Story tell_learned_or_sinusoidal(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  Learning learning = untrained(content);
  const std::vector<std::string> features = numbered("d", static_cast<std::size_t>(learning.scheme.width));
  const std::vector<std::int64_t> shown = content.integers("shown_rows");
  const std::vector<std::string> words = content.texts("words");
  const std::int64_t rows = learning.scheme.rows;
  story.say("rows", std::to_string(rows));
  story.say("last_row", std::to_string(rows - 1));
  story.say("next", std::to_string(rows + 1));
  story.say("last", std::to_string(words.size() - 1));

  story.step("table");
  story.show(rows_at({"E", "E: rows before training", as_labels(shown), features}, learning.form(), shown, "noise"));

  story.step("training");
  story.formula("loss = ½ ‖X + E − T‖²,  G = X + E − T,  E ← E − rate · G");
  const StoryMatrix x = story.show(given({"X", "X: a sentence", words, features}, content.table("x")));
  story.show(given({"T", "T: where it should be", words, features}, content.table("target")));
  std::vector<double> gradient = train_once(learning, content, x);
  const Addition gradient_rows =
      prepare(learning.scheme, {.weights = view(gradient.data(), {rows, learning.scheme.width})});
  story.show(rows_at({"G", "G: the gradient of each row", as_labels(shown), features}, gradient_rows, shown,
                     "X + E − T in the rows that were used, else 0"));
  story.show(
      rows_at({"E'", "E': rows after one step", as_labels(shown), features}, learning.form(), shown, "E − rate · G"));
  std::int64_t moved = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = gradient.begin() + row * learning.scheme.width;
    moved += std::any_of(begin, begin + learning.scheme.width, [](double value) { return value != 0; }) ? 1 : 0;
  }
  story.show({fact("rate", content.number("rate")), count("rows that moved", moved), count("rows in all", rows)});

  story.step("end");
  if (options.message_of) {
    std::vector<double> row(features.size());
    const std::string message = options.message_of([&] {
      tabulate(view(row.data(), {1, learning.scheme.width}), {.first = rows}, learning.form());
    });
    story.show({worded("error", message)});
  }

  story.step("formula");
  const Sinusoidal sinusoidal{.width = learning.scheme.width};
  const std::vector<std::int64_t> far = content.integers("far");
  story.show(waves({"P", "P: past the table", as_labels(far), features}, sinusoidal, far));
  story.say("far", std::to_string(far.back()));
  story.note("defined");

  story.step("cost");
  const std::int64_t width = content.integer("model_width");
  story.say("model_width", std::to_string(width));
  const Learned model{.rows = rows, .width = width};
  story.show({count("learned", model.rows * model.width), count("sinusoidal", 0)});

  story.step("relative");
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  const MatrixLabels whole{"", "", std::vector<std::string>(all.size()), features};
  const Neighbours noise = products_of_neighbours(rows_at(whole, learning.form(), all, ""));
  const Neighbours formula = products_of_neighbours(waves(whole, sinusoidal, all));
  story.show(measured({"N", "N: products of neighbouring rows", {"learned", "sinusoidal"}, {"smallest", "largest"}},
                      {noise.smallest, noise.largest, formula.smallest, formula.largest}, "over the whole table"));
  story.show({residual("spread, learned", noise.largest - noise.smallest),
              residual("spread, sinusoidal", formula.largest - formula.smallest)});

  story.step("verdict");
  return story.finish();
}

}  // namespace posenc::lessons
