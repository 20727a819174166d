#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"
#include "posenc/apply.h"

namespace posenc::lessons {
namespace {

// (R(m)q) · (R(n)k) as a function of q, k and m − n: one rotation by the difference.
StoryMatrix by_distance(const StoryMatrix& q, const StoryMatrix& k, const Rotation& form,
                        const std::vector<std::int64_t>& queries, const std::vector<std::int64_t>& keys) {
  std::vector<CellTerms> cells;
  for (const std::int64_t m : queries) {
    for (std::size_t key = 0; key < keys.size(); ++key) {
      CellTerms cell{"Σ (q_i · k_i) cos(ω_i (m − n)) + (q_i × k_i) sin(ω_i (m − n))"};
      for (std::size_t i = 0; i < form.frequencies.size(); ++i) {
        const double angle = static_cast<double>(m - keys[key]) * radians_of(form.frequencies[i]);
        const double q0 = q.at(0, 2 * i), q1 = q.at(0, 2 * i + 1);
        const double k0 = k.at(key, 2 * i), k1 = k.at(key, 2 * i + 1);
        cell.terms.push_back({{fmt::format("q{0} · k{0}", i), q0 * k0 + q1 * k1},
                              {fmt::format("cos(ω{} · {})", i, m - keys[key]), std::cos(angle)}});
        cell.terms.push_back({{fmt::format("q{0} × k{0}", i), q0 * k1 - q1 * k0},
                              {fmt::format("sin(ω{} · {})", i, m - keys[key]), std::sin(angle)}});
      }
      cells.push_back(std::move(cell));
    }
  }
  return computed({"C", "C: the same, from the distance only", as_labels(queries), as_labels(keys)},
                  std::move(cells));
}

}  // namespace

Story tell_kv_cache(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const Rope scheme{.dims = content.integer("dims"), .layout = PairLayout::kInterleaved};
  const Rotation form = prepare(scheme);
  const std::vector<std::string> features = numbered("d", scheme.dims);
  const std::vector<std::int64_t> queries = content.integers("queries");
  const std::int64_t evicted = content.integer("evicted");
  const std::vector<double> key_values = content.table("k");
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < key_values.size() / features.size(); ++i) {
    positions.push_back(static_cast<std::int64_t>(i));
  }
  story.say("evicted", std::to_string(evicted));

  story.step("cached");
  const StoryMatrix k =
      story.show(given({"k", "k: keys before rotation", as_labels(positions), features}, key_values));
  const StoryMatrix cache =
      story.show(rotated_to({"K", "K: the cache, key n rotated by n", k.rows, features}, k, form, positions));

  story.step("grows");
  const StoryMatrix q = story.show(given({"q", "q: a query", {"q"}, features}, content.table("q")));
  const StoryMatrix rotated_queries =
      story.show(rotated_to({"Q", "Q: the query at m", as_labels(queries), features}, q, form, queries));
  const StoryMatrix scores =
      story.show(product("S", "S = Q · Kᵀ: row m, column n", rotated_queries, cache, {.transposed = true}));
  const StoryMatrix closed = story.show(by_distance(q, k, form, queries, positions));
  story.show({residual("largest |S − C|", largest_difference(scores, closed))});

  story.step("shift");
  std::vector<std::int64_t> back(positions.size(), -evicted);
  // Rotating by −k is the inverse of rotating by k.
  std::vector<std::int64_t> by(positions.size(), evicted);
  StoryMatrix shifted = cache;
  shifted.name = "K-";
  shifted.caption = fmt::format("K-: the cache rotated by −{}", evicted);
  rotate(view(shifted.values.data(), shape_of(shifted)), {.ids = by}, inverse(form));
  std::vector<CellTerms> shifted_cells;
  for (std::size_t row = 0; row < cache.rows.size(); ++row) {
    for (std::size_t i = 0; i < features.size(); ++i) {
      const std::size_t a = i - i % 2;
      const double angle = static_cast<double>(back[row]) * radians_of(form.frequencies[i / 2]);
      const CellFactor cosine = {fmt::format("cos(−{} · ω{})", evicted, i / 2), std::cos(angle)};
      const CellFactor sine = {fmt::format("{}sin(−{} · ω{})", i == a ? "−" : "", evicted, i / 2),
                               (i == a ? -1 : 1) * std::sin(angle)};
      shifted_cells.push_back({i == a ? "a cos φ − b sin φ" : "a sin φ + b cos φ",
                               {{cell_factor(cache, row, a), i == a ? cosine : sine},
                                {cell_factor(cache, row, a + 1), i == a ? sine : cosine}}});
    }
  }
  shifted.recipe = ComputedCells{std::move(shifted_cells)};
  story.show(shifted);
  // Only the remaining keys have non-negative positions.
  std::vector<double> remaining;
  std::vector<std::int64_t> moved_positions;
  MatrixLabels labels{"k'", "", {}, features};
  for (std::size_t row = static_cast<std::size_t>(evicted); row < positions.size(); ++row) {
    const std::span<const double> values = row_of(k, row);
    remaining.insert(remaining.end(), values.begin(), values.end());
    moved_positions.push_back(positions[row] - evicted);
    labels.rows.push_back(k.rows[row]);
  }
  const StoryMatrix recomputed =
      rotated_to({"R", "R: the remaining keys, recomputed at their new positions", labels.rows, features},
                 given(labels, remaining), form, moved_positions);
  double difference = 0;
  for (std::size_t i = 0; i < recomputed.values.size(); ++i) {
    const std::size_t from = i + evicted * features.size();
    difference = std::max(difference, std::fabs(recomputed.values[i] - shifted.values[from]));
  }
  story.show({residual("largest difference from recomputed keys", difference)});

  story.step("mistake");
  std::vector<std::int64_t> renumbered;
  for (const std::int64_t query : queries) renumbered.push_back(query - evicted);
  const StoryMatrix wrong =
      product("", "", rotated_to({"", "", as_labels(renumbered), features}, q, form, renumbered), cache,
              {.transposed = true});
  story.show({fact("largest error of a score", largest_difference(wrong, scores))});

  story.step("cost");
  for (const char* const name : {"cache_keys", "cache_heads", "cache_features", "cache_layers"}) {
    story.say(name, std::to_string(content.integer(name)));
  }
  story.show(
      {count("values read and written", content.integer("cache_keys") * content.integer("cache_heads") *
                                            content.integer("cache_features") * content.integer("cache_layers"))});

  story.step("base");
  const Rope larger{.dims = scheme.dims, .base = content.number("new_base"), .layout = scheme.layout};
  story.say("base", fmt::format("{:g}", scheme.base));
  story.say("new_base", fmt::format("{:g}", larger.base));
  const Rotation new_form = prepare(larger);
  const StoryMatrix new_queries = rotated_to({"", "", as_labels(queries), features}, q, new_form, queries);
  const StoryMatrix stale = product("", "", new_queries, cache, {.transposed = true});
  const StoryMatrix fresh = product(
      "", "", new_queries, rotated_to({"", "", k.rows, features}, k, new_form, positions), {.transposed = true});
  story.show({residual("largest error with stale keys", largest_difference(stale, fresh))});
  return story.finish();
}

}  // namespace posenc::lessons
