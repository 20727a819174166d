#include <fmt/format.h>

#include <cmath>

#include "lessons/story_builder.h"
#include "lessons/story_rotations.h"
#include "lessons/tellers.h"
#include "posenc/attention.h"

namespace posenc::lessons {
namespace {

// One causal layer whose queries and keys are `qk` and whose values are x.
StoryMatrix causal_layer(StoryBuilder& story, const std::vector<std::string>& names, const StoryMatrix& qk,
                         const StoryMatrix& x) {
  const std::string root = fmt::format("√{}", x.columns.size());
  const StoryMatrix scores = story.show(product(
      names[0], fmt::format("{} = {} · {}ᵀ / {}", names[0], qk.name, qk.name, root), qk, qk,
      {.transposed = true, .divisor = std::sqrt(static_cast<double>(x.columns.size())), .divisor_name = root}));
  const Attended seen = attended({names[1], fmt::format("{} = softmax({}), causal", names[1], names[0]), names[2],
                                  fmt::format("{} = {} · {}", names[2], names[1], x.name)},
                                 {qk, qk, x, scores, true});
  story.show(seen.weights);
  return story.show(seen.output);
}

// How far `output` is from that of the library's attention, which rotates the queries and keys itself.
double distance_from_attention(const StoryMatrix& x, const Rotation& form, const StoryMatrix& output) {
  StoryMatrix inside = output;
  const auto rows = static_cast<std::int64_t>(x.rows.size()), columns = static_cast<std::int64_t>(x.columns.size());
  const Extents shape = {1, 1, rows, columns};
  AttentionOptions options;
  options.causal = true;
  options.position = form;
  const ConstTensorView tokens = view(x.values.data(), shape);
  attention(view(inside.values.data(), shape), tokens, tokens, tokens, options);
  return largest_difference(inside, output);
}

double last_rows_apart(const StoryMatrix& a, const StoryMatrix& b) {
  const std::size_t last = a.rows.size() - 1;
  double sum = 0;
  for (std::size_t i = 0; i < a.columns.size(); ++i)
    sum += (a.at(last, i) - b.at(last, i)) * (a.at(last, i) - b.at(last, i));
  return std::sqrt(sum);
}

StoryMatrix scores_by_distance(const StoryMatrix& q, const StoryMatrix& k, const Rotation& form,
                               const std::vector<std::int64_t>& distances) {
  std::vector<double> values;
  std::vector<CellTerms> cells;
  for (const std::int64_t distance : distances) {
    values.insert(values.end(), {rotated_score(q, k, form, {distance}, {0}), dot(row_of(q, 0), row_of(k, 0))});
    cells.insert(cells.end(), {score_terms(q, k, angles_at(form, {distance})), row_product(q, 0, k, 0)});
  }
  return computed({"D", "D: score of one query and one key, by distance", as_labels(distances), {"rope", "nope"}},
                  std::move(values), std::move(cells));
}

// The weight of one key whose score is `score` among keys whose scores are 0.
CellTerms weight_terms(double score, std::int64_t keys) {
  CellTerms cell{"e^score / (e^score + keys − 1)", {{{fmt::format("e^{:.3f}", score), std::exp(score)}}}};
  cell.divisor = CellFactor{"e^score + keys − 1", std::exp(score) + static_cast<double>(keys - 1)};
  return cell;
}

StoryMatrix weights_by_length(const Temperature& temperature, double score,
                              const std::vector<std::int64_t>& lengths) {
  std::vector<double> values;
  std::vector<CellTerms> cells;
  for (const std::int64_t keys : lengths) {
    const double factor = factor_at(temperature, keys - 1);
    const double turns = std::floor(static_cast<double>(keys) / static_cast<double>(temperature.length));
    const CellTerms plain = weight_terms(score, keys), warm = weight_terms(factor * score, keys);
    values.insert(values.end(), {value_of(plain), factor, value_of(warm)});
    cells.push_back(plain);
    cells.push_back({"1 + scale · ln(1 + ⌊keys / floor⌋)",
                     {{{"1", 1.0}}, {{"scale", temperature.scale}, {"ln(1 + ⌊keys / floor⌋)", std::log1p(turns)}}}});
    cells.push_back(warm);
  }
  StoryMatrix matrix = computed({"W",
                                 "W: weight of the one key that matters, by the number of keys",
                                 as_labels(lengths),
                                 {"plain", "factor", "with-factor"}},
                                std::move(values), std::move(cells));
  matrix.digits = 4;
  return matrix;
}

}  // namespace

Story tell_nope_layers(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const std::vector<std::string> words = content.texts("words");
  std::vector<std::size_t> order;
  std::vector<std::string> other;
  for (const std::int64_t place : content.integers("order")) {
    order.push_back(static_cast<std::size_t>(place));
    other.push_back(words[order.back()]);
  }
  const std::vector<double> values = content.table("x");
  const std::vector<std::string> features = numbered("d", values.size() / words.size());
  const Rotation form =
      prepare(Rope{.dims = static_cast<std::int64_t>(features.size()), .layout = PairLayout::kInterleaved});
  const double score = content.number("score");
  story.say("first", fmt::format("{}", fmt::join(words, " ")));
  story.say("second", fmt::format("{}", fmt::join(other, " ")));
  story.say("word", words.back());
  story.say("score", fmt::format("{:g}", score));

  story.step("puzzle");
  const StoryMatrix q = story.show(given({"q", "q: a query", {"q"}, features}, content.table("q")));
  const StoryMatrix k = story.show(given({"k", "k: a key", {"k"}, features}, content.table("k")));
  story.show(scores_by_distance(q, k, form, content.integers("distances")));

  story.step("alone");
  const StoryMatrix x1 = story.show(given({"X1", "X1: the first sentence", words, features}, values));
  const StoryMatrix x2 = story.show(reordered("X2", "X2: the second sentence", x1, order));
  const StoryMatrix n1 = causal_layer(story, {"S1", "A1", "N1"}, x1, x1);
  const StoryMatrix n2 = causal_layer(story, {"S2", "A2", "N2"}, x2, x2);
  story.show({residual(fmt::format("‖N1 − N2‖ of \"{}\"", words.back()), last_rows_apart(n1, n2))});

  story.step("rope");
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < words.size(); ++i) positions.push_back(static_cast<std::int64_t>(i));
  const StoryMatrix r1 = story.show(rotated_to({"R1", "R1: X1, rotated", x1.rows, features}, x1, form, positions));
  const StoryMatrix r2 = story.show(rotated_to({"R2", "R2: X2, rotated", x2.rows, features}, x2, form, positions));
  const StoryMatrix o1 = causal_layer(story, {"S1'", "A1'", "O1"}, r1, x1);
  const StoryMatrix o2 = causal_layer(story, {"S2'", "A2'", "O2"}, r2, x2);
  story.show({residual("largest difference from attention with RoPE inside", distance_from_attention(x1, form, o1)),
              fact(fmt::format("‖O1 − O2‖ of \"{}\"", words.back()), last_rows_apart(o1, o2), 4)});

  story.step("above");
  const StoryMatrix u1 = causal_layer(story, {"T1", "B1", "U1"}, o1, o1);
  const StoryMatrix u2 = causal_layer(story, {"T2", "B2", "U2"}, o2, o2);
  story.show({fact(fmt::format("‖U1 − U2‖ of \"{}\"", words.back()), last_rows_apart(u1, u2), 4)});

  story.step("length");
  const QueryTemperature scheme{};
  story.formula(fmt::format("weight = e^s / (e^s + keys − 1),   s = {:g} · factor", score));
  story.show(weights_by_length(*prepare(scheme).temperature, score, content.integers("lengths")));
  return story.finish();
}

}  // namespace posenc::lessons
