#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/prepare_options.h"
#include "posenc/schemes/rope.h"

namespace posenc {

/// Rotary position of patches in which both axes drive every pair, at trained frequencies that differ by head and layer.
///
///   (a, b) → (a cos φ − b sin φ,  b cos φ + a sin φ),   φ = x · θx[h, j] + y · θy[h, j]
///
/// Training starts with pairs in two orthogonal directions that differ from head to head: with a direction t_h in turns and
/// w_j = base^(−4j/dims), j < dims/4, pairs j and dims/4 + j have
///   (θx, θy) = w_j · (cos 2πt_h, sin 2πt_h)   and   w_j · (−sin 2πt_h, cos 2πt_h)
///
/// Heo et al., 2024, "Rotary Position Embedding for Vision Transformer" (RoPE-Mixed). As in naver-ai/rope-vit (ce85c2e5),
/// models/vit_rope.py: init_random_2d_freqs, compute_mixed_cis; there t_h is random and the base 100, in Swin's 10.
struct RopeMixed {
  static constexpr std::string_view name = "rope-mixed";
  static constexpr std::string_view family = "rotation";
  static constexpr std::string_view formula =
      "pairs of q and k rotated by x·wx[h,j] + y·wy[h,j], frequencies trained for each head";
  static constexpr std::string_view used_by = "RoPE-ViT and RoPE-Swin (rope_mixed_deit, swin_rope_mixed)";

  std::int64_t heads = 12;
  std::int64_t dims = 64;
  double base = 100.0;
  std::vector<double> directions = {};
  PairLayout layout = PairLayout::kInterleaved;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("heads", &RopeMixed::heads, "attention heads, each with frequencies of its own");
    visit("dims", &RopeMixed::dims, "rotary dimensions per head; a multiple of 4");
    visit("base", &RopeMixed::base, "base of the frequencies base^(-4j/dims) before training (rope_theta)");
    visit("directions", &RopeMixed::directions,
          "a head's direction before training, in turns, one per head (default: evenly spaced)");
    visit("layout", &RopeMixed::layout, "which features form a pair, before and after");
  }
  TrainedTable trained_table() const;
  static constexpr bool takes_fractions = true;
  static constexpr bool is_exact_alone = true;  // engines' float32 sums are not repeated
  bool operator==(const RopeMixed&) const = default;
};

/// The trained frequencies are the caller's, [2, heads, dims / 2], in radians per position:
/// prepare(RopeMixed{…}, {.weights = …}); without them, the initial frequencies. The first axis of the table is that of the
/// first coordinate: rope-vit's `freqs` start with x, so positions are (column, row). The table is only read here, exactly.
/// frequencies_backward (apply.h) computes its gradient, given a view with matching strides.
/// Range: heads 1 to 65536, dims a multiple of 4 up to 2^20, at most 2^24 frequencies; base above 1 up to 1e36; directions from
///   −1 to 1; frequencies up to 2^100.
/// Throws: Error that names field, value and rule; also for float32 numerics.
Rotation prepare(const RopeMixed& scheme, const PrepareOptions& options = {});

}  // namespace posenc
