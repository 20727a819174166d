#include <fmt/format.h>

#include <cmath>

#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"

namespace posenc::lessons {
namespace {

// One layer whose queries, keys and values are its input.
struct BareLayer {
  StoryMatrix scores, weights, output;
};

// `names` are the names of scores, weights and output.
BareLayer bare_layer(const StoryMatrix& x, const std::vector<std::string>& names, bool causal) {
  BareLayer layer;
  const std::string root = fmt::format("√{}", x.columns.size());
  layer.scores = product(
      names[0], fmt::format("{} = {} · {}ᵀ / {}", names[0], x.name, x.name, root), x, x,
      {.transposed = true, .divisor = std::sqrt(static_cast<double>(x.columns.size())), .divisor_name = root});
  Attended seen = attended({names[1], fmt::format("{} = softmax({}){}", names[1], names[0], causal ? ", causal" : ""),
                            names[2], fmt::format("{} = {} · {}", names[2], names[1], x.name)},
                           {x, x, x, layer.scores, causal});
  layer.weights = std::move(seen.weights);
  layer.output = std::move(seen.output);
  return layer;
}

// ‖last row of a − last row of b‖.
CellTerms last_row_distance(const StoryMatrix& a, const StoryMatrix& b) {
  const std::size_t row = a.rows.size() - 1;
  CellTerms cell{fmt::format("‖{0}[{2}] − {1}[{2}]‖", a.name, b.name, a.rows[row])};
  for (std::size_t i = 0; i < a.columns.size(); ++i) {
    const CellFactor difference = {fmt::format("({} − {})", cell_factor(a, row, i).name, cell_factor(b, row, i).name),
                                   a.at(row, i) - b.at(row, i)};
    cell.terms.push_back({difference, difference});
  }
  cell.function = "√";
  return cell;
}

}  // namespace

Story tell_nope(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const std::vector<std::string> words = content.texts("words");
  std::vector<std::size_t> order;
  std::vector<std::string> other;
  for (const std::int64_t place : content.integers("order")) {
    order.push_back(place);
    other.push_back(words[order.back()]);
  }
  story.say("first", fmt::format("{}", fmt::join(words, " ")));
  story.say("second", fmt::format("{}", fmt::join(other, " ")));
  const std::vector<double> values = content.table("x");
  const std::vector<std::string> features = numbered("d", values.size() / words.size());

  story.step("words");
  const StoryMatrix x1 = story.show(given({"X1", "X1: the first sentence", words, features}, values));
  const StoryMatrix x2 = story.show(reordered("X2", "X2: the second sentence", x1, order));

  story.step("one");
  const BareLayer one1 = bare_layer(x1, {"S1", "A1", "O1"}, true), one2 = bare_layer(x2, {"S2", "A2", "O2"}, true);
  for (const BareLayer* const layer : {&one1, &one2}) {
    story.show(layer->scores);
    story.show(layer->weights);
    story.show(layer->output);
  }
  const CellTerms after_one = last_row_distance(one1.output, one2.output);
  story.show({residual(fmt::format("‖O1 − O2‖ of \"{}\"", words.back()), value_of(after_one))});

  story.step("two");
  const BareLayer two1 = bare_layer(one1.output, {"T1", "B1", "U1"}, true);
  const BareLayer two2 = bare_layer(one2.output, {"T2", "B2", "U2"}, true);
  for (const BareLayer* const layer : {&two1, &two2}) {
    story.show(layer->scores);
    story.show(layer->weights);
    story.show(layer->output);
  }
  const CellTerms after_two = last_row_distance(two1.output, two2.output);
  story.show({fact(fmt::format("‖U1 − U2‖ of \"{}\"", words.back()), value_of(after_two), 4)});

  story.step("unmasked");
  const BareLayer free1 = bare_layer(x1, {"s1", "a1", "o1"}, false),
                  free2 = bare_layer(x2, {"s2", "a2", "o2"}, false);
  const BareLayer deep1 = bare_layer(free1.output, {"t1", "b1", "u1"}, false);
  const BareLayer deep2 = bare_layer(free2.output, {"t2", "b2", "u2"}, false);
  const CellTerms free_one = last_row_distance(free1.output, free2.output);
  const CellTerms free_two = last_row_distance(deep1.output, deep2.output);
  story.show({residual("after one layer", value_of(free_one)), residual("after two layers", value_of(free_two))});

  story.step("summary");
  StoryMatrix summary = computed({"R",
                                  fmt::format("R: distance of \"{}\" between the sentences", words.back()),
                                  {"causal", "no-mask"},
                                  {"one-layer", "two-layers"}},
                                 {after_one, after_two, free_one, free_two});
  summary.digits = 4;
  story.show(summary);
  return story.finish();
}

}  // namespace posenc::lessons
