
#include <numeric>

#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"

namespace posenc::lessons {
namespace {

// Row i is row order[i] of `x`, and column j is column order[j].
StoryMatrix permuted_on_both_sides(const StoryMatrix& x, const std::vector<std::size_t>& order) {
  StoryMatrix result = x;
  for (std::size_t row = 0; row < order.size(); ++row) {
    for (std::size_t column = 0; column < order.size(); ++column) {
      result.values[row * order.size() + column] = x.at(order[row], order[column]);
    }
  }
  return result;
}

}  // namespace

Story tell_permutation_proof(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const std::vector<std::string> words = content.texts("words");
  std::vector<std::size_t> order;
  for (const std::int64_t place : content.integers("order")) order.push_back(place);
  std::vector<std::string> moved;
  std::vector<double> ones(words.size() * words.size());
  for (std::size_t row = 0; row < order.size(); ++row) {
    moved.push_back(words[order[row]]);
    ones[row * words.size() + order[row]] = 1;
  }
  const std::vector<double> values = content.table("x");
  const std::vector<std::string> features = numbered("d", values.size() / words.size());
  const std::vector<std::string> heads = {"h0", "h1"};

  story.step("setup");
  const StoryMatrix x = story.show(given({"X", "X: one row per word", words, features}, values));
  Projections weights;
  weights.q = story.show(given({"W_Q", "W_Q", features, heads}, content.table("w_q")));
  weights.k = story.show(given({"W_K", "W_K", features, heads}, content.table("w_k")));
  weights.v = story.show(given({"W_V", "W_V", features, heads}, content.table("w_v")));
  const StoryMatrix permutation = story.show(given({"Π", "Π: the permutation", moved, words}, ones));
  const StoryMatrix px = story.show(product("ΠX", "ΠX = Π · X", permutation, x));

  const Stages plain = stages_of(x, "", weights), permuted = stages_of(px, "'", weights);
  const auto residue = [&](const StoryMatrix& got, const StoryMatrix& from) {
    return largest_difference(got, reordered("", "", from, order));
  };
  story.step("projections");
  story.formula("Q' = (Π·X)·W_Q = Π·(X·W_Q) = Π·Q,   K' = Π·K,   V' = Π·V");
  for (const StoryMatrix* const matrix : {&plain.q, &permuted.q, &plain.k, &permuted.k, &plain.v, &permuted.v}) {
    story.show(*matrix);
  }
  story.show({residual("largest |Q' − Π·Q|", residue(permuted.q, plain.q)),
              residual("largest |K' − Π·K|", residue(permuted.k, plain.k)),
              residual("largest |V' − Π·V|", residue(permuted.v, plain.v))});

  story.step("scores");
  story.formula("Q'·K'ᵀ = Π·Q·(Π·K)ᵀ = Π·(Q·Kᵀ)·Πᵀ");
  story.show(plain.scores);
  story.show(permuted.scores);
  story.show({residual("largest |S' − Π·S·Πᵀ|",
                       largest_difference(permuted.scores, permuted_on_both_sides(plain.scores, order)))});

  story.step("softmax");
  story.formula("softmax(Π·S·Πᵀ) = Π·softmax(S)·Πᵀ");
  story.show(plain.weights);
  story.show(permuted.weights);
  story.show({residual("largest |A' − Π·A·Πᵀ|",
                       largest_difference(permuted.weights, permuted_on_both_sides(plain.weights, order)))});

  story.step("output");
  story.formula("A'·V' = Π·A·Πᵀ·Π·V = Π·A·V = Π·Att(X)");
  const StoryMatrix identity = product("", "", permutation, permutation, {.transposed = true});
  std::vector<double> unit(words.size() * words.size());
  for (std::size_t i = 0; i < words.size(); ++i) unit[i * words.size() + i] = 1;
  story.show(plain.output);
  story.show(permuted.output);
  story.show({residual("largest |Π·Πᵀ − I|", largest_difference(identity, given({"", "", moved, moved}, unit))),
              residual("largest |Att(Π·X) − Π·Att(X)|", residue(permuted.output, plain.output))});

  story.step("broken");
  story.formula("Π·(X + P) ≠ Π·X + P");
  const Sinusoidal scheme{.width = static_cast<std::int64_t>(features.size())};
  std::vector<std::int64_t> positions(words.size());
  std::iota(positions.begin(), positions.end(), 0);
  const StoryMatrix p =
      story.show(waves({"P", "P: one row per position", as_labels(positions), features}, scheme, positions));
  const StoryMatrix placed = added({"X+P", "", words, features}, x, p, scheme, positions);
  const StoryMatrix placed_moved = added({"ΠX+P", "", moved, features}, px, p, scheme, positions);
  const Stages with = stages_of(placed, "", weights), with_moved = stages_of(placed_moved, "", weights);
  story.show({fact("largest |(Π·X + P) − Π·(X + P)|", residue(placed_moved, placed)),
              fact("largest |Att(Π·X + P) − Π·Att(X + P)|", residue(with_moved.output, with.output))});
  return story.finish();
}

}  // namespace posenc::lessons
