#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"
#include "posenc/schemes/rope.h"

namespace posenc {

/// RoPE in which each pair is a mixture of many frequencies, so that no pair depends on a single wave, and which omits the
/// waves that do not complete a turn within the trained length.
///
///   (a, b) → (a C_j − b S_j,  b C_j + a S_j)
///   C_j(p) = Σ_i cosines[h, i, j] · cos p w_i,   S_j(p) = Σ_i sines[h, i, j] · sin p w_i,   w_i = base^(−2i/n)
///
/// over the D frequencies w_i ≥ 2π/length, where n is the larger of dims and `spectrum`. The first min(D, dims/4) pairs are
/// such sums. The others have C = S = 1 at every position: they carry no position.
/// Hua et al., 2024, "Fourier Position Embedding: Enhancing Attention's Periodic Extension for Length Generalization"
/// (FoPE). As in TsinghuaC3I/Fourier-Position-Embedding (bd94b20d), olmo/model.py (FourierEmbedding, get_inv_freq) with
/// rope_clamp_floor_to_zero and fourier_ignore_zero, as in all of its configs; coefficients are drawn once, close to the
/// identity, and not trained. A mixture is not a rotation: scores depend on more than the distance.
struct Fope {
  static constexpr std::string_view name = "fope";
  static constexpr std::string_view family = "rotation";
  static constexpr std::string_view formula =
      "pairs of q and k rotated by sums of waves, per head: cos -> sum_i C[h,i,j] cos p·w_i, sin alike";
  static constexpr std::string_view used_by = "FoPE's OLMo models (60M, 180M, 1.2B)";

  std::int64_t heads = 8;
  std::int64_t dims = 64;
  double base = 10000.0;
  std::int64_t length = 512;
  std::int64_t spectrum = 0;
  PairLayout layout = PairLayout::kHalves;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("heads", &Fope::heads, "attention heads, each with coefficients of its own; 1: all share them");
    visit("dims", &Fope::dims, "rotary dimensions per head; a multiple of 4");
    visit("base", &Fope::base, "base of the frequencies (rope_theta)");
    visit("length", &Fope::length, "trained length: slower waves are left out (max_sequence_length)");
    visit("spectrum", &Fope::spectrum, "frequencies base^(-2i/spectrum), if that is above dims (fourier_dim)");
    visit("layout", &Fope::layout, "which features form a pair, before and after");
  }
  TrainedTable trained_table() const;
  static constexpr bool is_exact_alone = true;  // engines' float32 sums are not repeated
  bool operator==(const Fope&) const = default;
};

/// The coefficients are the caller's, [2, heads, D, mixed pairs], sines (sin_coef) before cosines (cos_coef):
/// prepare(Fope{…}, {.weights = …}); without them, pair j is wave j·⌈D / pairs⌉ alone (fourier_init eye). They are copied.
/// Range: heads 1 to 65536, dims a multiple of 4 up to 2^16, spectrum even, up to 2^16, at most 2^24 coefficients; base above 1
///   up to 1e36; length 1 to 2^53.
/// Throws: Error that names field, value and rule; also for float32 numerics.
Rotation prepare(const Fope& scheme, const PrepareOptions& options = {});

}  // namespace posenc
