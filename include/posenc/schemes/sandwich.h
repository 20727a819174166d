#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/situation.h"

namespace posenc {

/// What two sinusoidal positions have in common, as a bias: their dot product depends on distance alone and falls in
/// the large, so the sines need not be added to the tokens at all.
///
///   bias(h, m, n) = heads / (8·(h+1)) · Σ_i cos((n − m)·ω_i),   ω_i = base^(−2i/dims), i = 0 … dims/2 − 1
///
/// Chi et al., 2022, "Dissecting Transformer Length Extrapolation via the Lens of Receptive Field Analysis".
struct Sandwich {
  static constexpr std::string_view name = "sandwich";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula = "score + heads/(8(h+1)) * sum_i cos((n-m)*w_i)";
  static constexpr std::string_view used_by = "research on longer contexts";

  std::int64_t heads = 12;
  std::int64_t dims = 128;
  double base = 10000.0;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("heads", &Sandwich::heads, "attention heads");
    visit("dims", &Sandwich::dims, "features of the sinusoids; even");
    visit("base", &Sandwich::base, "how much slower the slowest wave is than the fastest");
  }
  LengthNeed needs_length() const { return LengthNeed::kDistances; }
  bool operator==(const Sandwich&) const = default;
};

/// A table of the distances 0 … length − 1; further ones are an error. Needs a length.
/// Error: each cosine within 0.501 ulp of double, their sum in double; the same bytes on every machine.
/// Range: heads 1 to 65536, dims even, 2 to 2^20, base 1 to 1e36; length 1 to 2^20.
Bias prepare(const Sandwich& scheme, const Situation& now = {});

}  // namespace posenc
