#pragma once

#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// No positional encoding (NoPE). A causal mask alone still gives a decoder some information about order.
/// Kazemnejad et al., 2023, "The Impact of Positional Encoding on Length Generalization in Transformers".
struct None {
  static constexpr std::string_view name = "none";
  static constexpr std::string_view family = "nothing";
  static constexpr std::string_view formula = "x";
  static constexpr std::string_view used_by = "NoPE decoders; every fourth layer of Llama 4 and SmolLM3";

  template <class Visitor> static void fields(Visitor&&) {}
  bool operator==(const None&) const = default;
};

Nothing prepare(const None& scheme, const PrepareOptions& options = {});

}  // namespace posenc
