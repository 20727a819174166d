#pragma once

#include <cmath>

#include "terms/tables.h"
#include "terms/term.h"

namespace posenc::terms {

/// Where a count of gates falls among the rows of a table.
struct ContextualPlace {
  std::int64_t below = 0, above = 0;  // ⌊p⌋ and ⌈p⌉
  double part = 0;                    // p − ⌊p⌋
  bool is_cut = false;                // clamped: p is the last row, however much the count grows
};
/// A NaN count is clamped too: the score of its key is NaN as well.
inline ContextualPlace contextual_place(double count, std::int64_t rows) noexcept {
  const auto last = static_cast<double>(rows - 1);
  if (!(count <= last)) return {rows - 1, rows - 1, 0, true};
  const double below = std::floor(count);
  return {static_cast<std::int64_t>(below), static_cast<std::int64_t>(std::ceil(count)), count - below, false};
}

/// σ(x) = 1 / (1 + e^−x), written so that neither exponential overflows.
inline double gate_of(double x) noexcept {
  const double small = std::exp(-std::fabs(x));
  return (x >= 0 ? 1.0 : small) / (1.0 + small);
}

/// A count needs the scores of all later keys, so engines add it to whole rows of scores, not through element().
template <> struct Term<CountedGates> : TermDefaults {
  static constexpr std::string_view name = "counted-gates";
  static constexpr bool is_in_elements = false;
  static constexpr std::string_view only_attention =
      "contextual positions depend on q and k, so only attention can add them";
  static constexpr bool reads_tokens_between = true;

  static void check(std::string_view verb, const CountedGates& source, std::int64_t heads);
  static CountedGates some_heads(const CountedGates& all, std::int64_t, const HeadRange& range) {
    return {rows_of_heads(all.table, range)};
  }
  static Cost cost(const CountedGates& source, const CostSizes& sizes);
  static void bind(CountedGates& source, const Tables& given) { bind_only(source.table, given); }
  static double element(const CountedGates&, std::int64_t, const Score&) noexcept { return 0; }

  static std::int64_t features(const CountedGates& source) { return source.table.shape.back(0); }
  static VectorTables vectors(const CountedGates& source, std::int64_t) { return {.queries = source.table}; }
  static void check_features(std::string_view verb, const CountedGates& source, std::int64_t q, std::int64_t) {
    check_vector_features(verb, source.table, q, "q");
  }
};

}  // namespace posenc::terms
