#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// Positions that depend on content: each key has a gate between 0 and 1 for a given query, and the position of a key is
/// the sum of the gates from it to the query. The trained vectors of the two nearest integer positions are interpolated.
///
///   g(m, n) = σ(scale · q_m·k_n),   p(m, n) = min(Σ_{t = n … m} g(m, t), rows − 1)
///   score(m, n) = scale · q_m·k_n + (1 − w) · q_m·E[⌊p⌋] + w · q_m·E[⌈p⌉],   w = p − ⌊p⌋
///
/// Golovneva, Wang, Weston and Sukhbaatar, 2024, "Contextual Position Encoding: Learning to Count What's Important"
/// (CoPE), whose appendix B has the code. Read in lucidrains/x-transformers 2.26.4 (9252ed78): class CoPE of
/// x_transformers.py, and attend.py, which adds it after the causal mask; the product with E is not scaled.
struct Cope {
  static constexpr std::string_view name = "cope";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula =
      "score + q.E[p] interpolated at p = sigmoid(score) summed over the keys from n to m";
  static constexpr std::string_view used_by = "CoPE; x-transformers (use_cope)";

  std::int64_t rows = 64;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("rows", &Cope::rows, "positions with a vector; larger counts use the last (npos_max)");
  }
  TrainedTable trained_table() const;
  bool operator==(const Cope&) const = default;
};

/// The table E is the caller's, [rows, features] for all heads or [heads, rows, features]; the paper's pos_emb
/// is its transpose. Only attention can add it. Range: rows 1 to 2^20.
Bias prepare(const Cope& scheme, const PrepareOptions& options = {});

}  // namespace posenc
