#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"
#include "posenc/schemes/choice.h"

namespace posenc {

/// Which position is subtracted from the other to select a row of the table.
enum class DistanceOrder : std::uint8_t {
  kKeyMinusQuery,  ///< row 0 is the furthest key behind (Shaw et al., wav2vec 2.0-BERT)
  kQueryMinusKey,  ///< row 0 is the furthest key ahead (Hugging Face's relative_key)
};
template <> struct ChoiceNames<DistanceOrder> {
  static constexpr std::array<std::string_view, 2> value = {"key-minus-query", "query-minus-key"};
};

/// What happens at distances beyond the last vector.
enum class BeyondReach : std::uint8_t {
  kClip,  ///< they use the last vector (Shaw et al.)
  kNone,  ///< they have no vector (VITS)
};
template <> struct ChoiceNames<BeyondReach> {
  static constexpr std::array<std::string_view, 2> value = {"clip", "none"};
};

/// A trained vector for each clipped distance is added to the key before its product with the query, and another to the
/// value.
///
///   score(m, n) = scale · q_m · (k_n + table[clip(n − m, −left, right) + left])
///   out_m = Σ_n weight(m, n) · (v_n + values[clip(n − m, −left, right) + left])      (with `with_values`)
///
/// Shaw et al., 2018, "Self-Attention with Relative Position Representations". With `with_keys`, the product of
/// k_n with the same vector is added too (Hugging Face's relative_key_query; Huang et al., 2020).
struct Shaw {
  static constexpr std::string_view name = "shaw";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula =
      "score + q.table[clip(n-m, -left, right) + left]; values too: v + values[the same row]";
  static constexpr std::string_view used_by =
      "Shaw et al., BERT with relative_key, wav2vec 2.0-BERT, Music Transformer, VITS, SeamlessM4T v2";

  std::int64_t left = 64;
  std::int64_t right = 64;
  DistanceOrder order = DistanceOrder::kKeyMinusQuery;
  bool with_keys = false;
  bool with_values = false;
  BeyondReach beyond = BeyondReach::kClip;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("left", &Shaw::left, "largest distance to an earlier key with its own vector");
    visit("right", &Shaw::right, "largest distance to a later key with its own vector");
    visit("order", &Shaw::order, "order of the rows of the table");
    visit("with_keys", &Shaw::with_keys, "multiply the vectors with the keys as well (relative_key_query)");
    visit("with_values", &Shaw::with_values, "add a second table's vectors to the values (Shaw et al., VITS)");
    visit("beyond", &Shaw::beyond, "past left and right: clip to the last vector, or none (VITS)");
  }
  TrainedTable trained_table() const;
  bool operator==(const Shaw&) const = default;
};

/// The tables are the caller's, [left + right + 1, features] for all heads or [heads, left + right + 1, features]:
/// prepare(Shaw{…}, {.weights = …, .value_weights = …}). Only attention can add it.
/// Range: left and right 0 to 2^20.
Bias prepare(const Shaw& scheme, const PrepareOptions& options = {});

}  // namespace posenc
