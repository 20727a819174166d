#include <fmt/format.h>

#include <algorithm>
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
  result.table.resize(result.scheme.rows * result.scheme.width);
  // Drawn as one long row, because every row of this scheme would be the same.
  const auto size = static_cast<std::int64_t>(result.table.size());
  const Shift noise{.width = size, .step = 0.0, .seed = content.integer("seed")};
  tabulate(view(result.table.data(), {1, size}), {}, prepare(noise));
  for (double& value : result.table) value *= content.number("noise");
  return result;
}

StoryMatrix rows_at(MatrixLabels labels, const Addition& form, const std::vector<std::int64_t>& positions) {
  std::vector<double> values(positions.size() * labels.columns.size());
  tabulate(view(values.data(), {static_cast<std::int64_t>(positions.size()), form.width}), {.ids = positions}, form);
  return given(std::move(labels), std::move(values));
}

struct Adjacent {
  CellTerms smallest, largest;

  double spread() const { return value_of(largest) - value_of(smallest); }
};

Adjacent products_of_adjacent_rows(const StoryMatrix& rows) {
  std::size_t low = 1, high = 1;
  const auto value = [&](std::size_t row) { return dot(row_of(rows, row - 1), row_of(rows, row)); };
  for (std::size_t row = 1; row < rows.rows.size(); ++row) {
    if (value(row) < value(low)) low = row;
    if (value(row) > value(high)) high = row;
  }
  return {row_product(rows, low - 1, rows, low), row_product(rows, high - 1, rows, high)};
}

// X + E − T for the rows that were used; other rows have no gradient.
std::vector<CellTerms> gradient_terms(const StoryMatrix& e, const StoryMatrix& x, const StoryMatrix& target,
                                      const std::vector<std::int64_t>& rows) {
  std::vector<CellTerms> cells;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::size_t word = rows[row];
    for (std::size_t i = 0; i < e.columns.size(); ++i) {
      if (word >= x.rows.size()) {
        cells.push_back(constant("0: no token used this row"));
        continue;
      }
      cells.push_back(
          {"X + E − T",
           {{cell_factor(x, word, i)}, {cell_factor(e, row, i)}, {{"−1", -1.0}, cell_factor(target, word, i)}}});
    }
  }
  return cells;
}

std::vector<CellTerms> step_terms(const StoryMatrix& e, const StoryMatrix& gradient, double rate) {
  std::vector<CellTerms> cells;
  for (std::size_t row = 0; row < e.rows.size(); ++row) {
    for (std::size_t i = 0; i < e.columns.size(); ++i) {
      cells.push_back(
          {"E − rate · G", {{cell_factor(e, row, i)}, {{"−rate", -rate}, cell_factor(gradient, row, i)}}});
    }
  }
  return cells;
}

void show_published(StoryBuilder& story, const StoryContent& content, std::string name, std::string caption,
                    std::string_view key) {
  StoryMatrix figures = given({std::move(name), std::move(caption), content.texts(fmt::format("{}_rows", key)),
                               content.texts(fmt::format("{}_columns", key))},
                              content.table(key));
  figures.digits = 2;
  story.show(figures);
}

// One step of gradient descent on ½ ‖x + E − target‖². Returns the gradient, [rows, width].
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
  const std::vector<std::string> features = numbered("d", learning.scheme.width);
  const std::vector<std::int64_t> shown = content.integers("shown_rows");
  const std::vector<std::string> words = content.texts("words");
  const std::int64_t rows = learning.scheme.rows;
  story.say("rows", std::to_string(rows));
  story.say("last_row", std::to_string(rows - 1));
  story.say("next", std::to_string(rows + 1));
  story.say("last", std::to_string(words.size() - 1));

  story.step("table");
  const StoryMatrix e =
      story.show(rows_at({"E", "E: rows before training", as_labels(shown), features}, learning.form(), shown));

  story.step("training");
  story.formula("loss = ½ ‖X + E − T‖²,  G = X + E − T,  E ← E − rate · G");
  const StoryMatrix x = story.show(given({"X", "X: a sentence", words, features}, content.table("x")));
  const StoryMatrix target = story.show(given({"T", "T: the targets", words, features}, content.table("target")));
  std::vector<double> gradient = train_once(learning, content, x);
  const Addition gradient_rows =
      prepare(learning.scheme, {.weights = view(gradient.data(), {rows, learning.scheme.width})});
  StoryMatrix g = rows_at({"G", "G: the gradient of each row", as_labels(shown), features}, gradient_rows, shown);
  g.recipe = ComputedCells{gradient_terms(e, x, target, shown)};
  story.show(g);
  StoryMatrix after = rows_at({"E'", "E': rows after one step", as_labels(shown), features}, learning.form(), shown);
  after.recipe = ComputedCells{step_terms(e, g, content.number("rate"))};
  story.show(after);
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
  story.show(waves({"P", "P: positions past the end of the table", as_labels(far), features}, sinusoidal, far));
  story.say("far", std::to_string(far.back()));
  story.note("defined");

  story.step("cost");
  const std::int64_t width = content.integer("model_width");
  story.say("model_width", std::to_string(width));
  const Learned model{.rows = rows, .width = width};
  story.show({count("learned", model.rows * model.width), count("sinusoidal", 0)});

  story.step("relative");
  std::vector<std::int64_t> all(rows);
  std::iota(all.begin(), all.end(), 0);
  const Adjacent noise =
      products_of_adjacent_rows(rows_at({"E'", "", as_labels(all), features}, learning.form(), all));
  const Adjacent formula = products_of_adjacent_rows(waves({"P", "", as_labels(all), features}, sinusoidal, all));
  story.show(computed({"N", "N: dot products of adjacent rows", {"learned", "sinusoidal"}, {"smallest", "largest"}},
                      {noise.smallest, noise.largest, formula.smallest, formula.largest}));
  story.show({residual("spread, learned", noise.spread()), residual("spread, sinusoidal", formula.spread())});

  story.step("verdict");
  show_published(story, content, "V", "V: published results (Vaswani et al. 2017, Table 3)", "published");
  story.step("extrapolation");
  show_published(story, content, "L", "L: published perplexity of a sinusoidal model (Press et al. 2022)",
                 "published_lengths");
  return story.finish();
}

}  // namespace posenc::lessons
