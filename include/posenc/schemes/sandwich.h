#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// The dot product of two sinusoidal position vectors as a bias. It depends only on the distance and decreases with it
/// overall; nothing is added to the tokens.
///
///   bias(h, m, n) = heads / (8·(h+1)) · Σ_i cos((n − m)·ω_i),   ω_i = base^(−2i/dims), i = 0 … dims/2 − 1
///
/// Chi et al., 2022, "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field Analysis".
struct Sandwich {
  static constexpr std::string_view name = "sandwich";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula = "score + heads/(8(h+1)) * sum_i cos((n-m)*w_i)";
  static constexpr std::string_view used_by = "research on length extrapolation";

  std::int64_t heads = 12;
  std::int64_t dims = 128;
  double base = 10000.0;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("heads", &Sandwich::heads, "attention heads");
    visit("dims", &Sandwich::dims, "features of the sinusoids; even");
    visit("base", &Sandwich::base, "base of the frequencies base^(-2i/dims)");
  }
  LengthNeed needs_length() const { return LengthNeed::kDistances; }
  bool operator==(const Sandwich&) const = default;
};

/// Computes a table of the distances 0 … length − 1; larger ones are rejected. Needs a length.
/// Error: each cosine within 0.501 ulp of double, their sum in double; bit-identical on every machine.
/// Range: heads 1 to 65536, dims even, 2 to 2^20, base 1 to 1e36; length 1 to 2^20.
Bias prepare(const Sandwich& scheme, const PrepareOptions& options = {});

}  // namespace posenc
