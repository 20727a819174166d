#pragma once

#include <optional>

#include "terms/term.h"
#include "terms/tiles.h"

namespace posenc::terms {

template <> struct Term<GateSums> : TermDefaults {
  static constexpr std::string_view name = "gate-sums";
  static constexpr std::string_view only_attention =
      "gates are an input of attention, so only attention can add their sums";
  static constexpr bool reads_tokens_between = true;

  static void check(std::string_view, const GateSums&, std::int64_t) {}
  static GateSums some_heads(const GateSums&, std::int64_t, const HeadRange&) { return {}; }
  static Cost cost(const GateSums&, const CostSizes& sizes) {
    return {.operations = 2 * sizes.keys, .numbers = sizes.keys};
  }
  static BiasInputs inputs(const GateSums&) { return {.log_gates = true}; }
  static double element(const GateSums&, std::int64_t, const Score& at) noexcept {
    const Tokens& tokens = at.tokens;
    return tokens.gate_sum(at.b, at.h, tokens.key_range(at.b, at.i).diagonal) - tokens.gate_sum(at.b, at.h, at.j);
  }
  static std::optional<GateTiles> tiles(const GateSums&, const Tokens& tokens, const TileExtents& extents);
};

}  // namespace posenc::terms
