#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"

namespace posenc::lessons {
namespace {

// A head without content: its input at position p is P(p).
struct BackHead {
  StoryMatrix p, q, k, scores, weights;
};

BackHead back_head(std::string_view mark, const Sinusoidal& scheme, const std::vector<std::int64_t>& positions,
                   const StoryMatrix& w_q, const StoryMatrix& w_k) {
  const std::vector<std::string> labels = as_labels(positions);
  const auto named = [&](std::string_view letter) { return fmt::format("{}{}", letter, mark); };
  BackHead head;
  head.p =
      waves({named("P"), fmt::format("{}: one row per position", named("P")), labels, w_q.rows}, scheme, positions);
  head.q = product(named("Q"), fmt::format("{} = {} · W_Q", named("Q"), head.p.name), head.p, w_q);
  head.k = product(named("K"), fmt::format("{} = {} · W_K: each row moved", named("K"), head.p.name), head.p, w_k);
  head.scores =
      product(named("S"), fmt::format("{} = {} · {}ᵀ: row p, column n", named("S"), head.q.name, head.k.name), head.q,
              head.k, {.transposed = true});
  head.weights = attended({named("A"), fmt::format("{} = softmax({}), causal", named("A"), named("S")), "", ""},
                          {head.q, head.k, head.p, head.scores, true})
                     .weights;
  return head;
}

// The column of the largest weight of a row.
std::size_t peak_of(const StoryMatrix& weights, std::size_t row) {
  const std::span<const double> values = row_of(weights, row);
  return std::max_element(values.begin(), values.end()) - values.begin();
}

}  // namespace

Story tell_look_back(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const Sinusoidal scheme{.width = content.integer("width")};
  const std::size_t width = scheme.width;
  const std::int64_t k = content.integer("k"), far = content.integer("far"), length = content.integer("length");
  const double sharpness = content.number("sharpness");
  const std::vector<std::string> features = numbered("d", width);
  std::vector<std::int64_t> positions(length), far_positions(positions.size());
  std::iota(positions.begin(), positions.end(), 0);
  std::iota(far_positions.begin(), far_positions.end(), far);
  story.say("k", std::to_string(k));
  story.say("sharpness", fmt::format("{:g}", sharpness));
  story.say("far", std::to_string(far));
  story.say("last", std::to_string(far + length - 1));

  // W_K: rows are multiplied from the left, so it is the transpose of the matrix that shifts a column vector by k.
  std::vector<double> diagonal(width * width), moves(width * width);
  const std::vector<double> frequencies = frequencies_of(scheme);
  std::vector<CellTerms> move_terms(width * width, constant("0: features of different pairs do not mix"));
  for (std::size_t i = 0; i < width; ++i) diagonal[i * width + i] = sharpness;
  for (std::size_t i = 0; i < width; i += 2) {
    const std::vector<CellFactor> angle = {{"k", static_cast<double>(k)},
                                           {fmt::format("ω{}", i / 2), frequencies[i / 2]}};
    std::vector<CellFactor> back = angle;
    back.front() = {"−k", static_cast<double>(-k)};
    move_terms[i * width + i] = {"cos(k · ω_i)", {angle}, "cos"};
    move_terms[i * width + i + 1] = {"sin(−k · ω_i)", {back}, "sin"};
    move_terms[(i + 1) * width + i] = {"sin(k · ω_i)", {angle}, "sin"};
    move_terms[(i + 1) * width + i + 1] = {"cos(k · ω_i)", {angle}, "cos"};
  }
  for (std::size_t i = 0; i < moves.size(); ++i) moves[i] = value_of(move_terms[i]);
  const StoryMatrix w_q =
      given({"W_Q", fmt::format("W_Q = {:g} · I", sharpness), features, features}, std::move(diagonal));
  const StoryMatrix w_k = computed({"W_K", fmt::format("W_K: moves a row by {}", k), features, features},
                                   std::move(moves), std::move(move_terms));
  const BackHead head = back_head("", scheme, positions, w_q, w_k);

  story.step("rows");
  story.show(head.p);
  story.step("weights");
  story.show(w_q);
  story.show(w_k);
  story.show(head.q);
  story.show(head.k);

  story.step("scores");
  story.formula("Q(p) · K(n) = β · P(p) · P(n + k) = β · Σ cos(ω_i (p − n − k))");
  story.show(head.scores);

  story.step("attention");
  story.show(head.weights);
  bool is_at_peak = true;
  double least = 1;
  for (std::size_t row = k; row < positions.size(); ++row) {
    const std::size_t wanted = row - k;
    is_at_peak = is_at_peak && peak_of(head.weights, row) == wanted;
    least = std::min(least, head.weights.at(row, wanted));
  }
  story.show({check(fmt::format("largest weight at n = p − {}, for every p from {}", k, k), is_at_peak),
              fact("smallest of these weights", least)});

  story.step("far");
  const BackHead there = back_head("+", scheme, far_positions, w_q, w_k);
  for (const StoryMatrix* const matrix : {&there.p, &there.q, &there.k, &there.scores, &there.weights}) {
    story.show(*matrix);
  }
  story.show({residual("largest difference of the weights", largest_difference(there.weights, head.weights))});
  return story.finish();
}

}  // namespace posenc::lessons
