#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/prepare_options.h"
#include "posenc/schemes/rope.h"

namespace posenc {

/// Rotary position of patches whose coordinates run from −1 to 1 regardless of the image size: a wave of frequency 1
/// completes two turns across the image.
///
///   (a, b) → (a cos φ − b sin φ,  b cos φ + a sin φ),   φ = 2π · c_a · base^(−j/s),   c_a = p_a / N_a = (2i + 1 − N_a) / N_a
///
/// i is the patch's index on axis a, N_a the number of patches on it, and s = dims / (2 · axes) the number of pairs per
/// axis, j = 0 … s − 1. Positions are the integers p_a = 2i + 1 − N_a, which centred_positions returns; the division by N_a
/// is exact, because it is part of the frequency. Siméoni et al., 2025, "DINOv3". As in transformers 5.16 (d56c55bf),
/// modeling_dinov3_vit.py.
struct PatchRope {
  static constexpr std::string_view name = "patch-rope";
  static constexpr std::string_view family = "rotation";
  static constexpr std::string_view formula =
      "pairs of q and k rotated by 2pi·c·base^(-j/s), c = (2i+1-N)/N in [-1, 1] on each axis";
  static constexpr std::string_view used_by = "DINOv3, EoMT with DINOv3, Sapiens 2";

  std::int64_t dims = 64;
  double base = 100.0;
  std::vector<std::int64_t> patches = grid_of(14, 14);
  PairLayout layout = PairLayout::kHalves;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("dims", &PatchRope::dims, "rotary dimensions per head; a multiple of twice the axes");
    visit("base", &PatchRope::base, "base of the frequencies base^(-j/s) (rope_theta)");
    visit("patches", &PatchRope::patches, "patches along each of 1 to 3 axes (default 14,14)");
    visit("layout", &PatchRope::layout, "which features form a pair, before and after");
  }
  static constexpr bool is_exact_alone = true;  // engines' float32 coordinates are not repeated
  bool operator==(const PatchRope&) const = default;
};

/// Range: dims a multiple of 2 · axes, up to 2^20; base above 1 up to 1e36; 1 to 3 extents, 1 to 2^20.
/// Throws: Error that names field, value and rule; also for float32 numerics, which posenc does not reproduce here.
Rotation prepare(const PatchRope& scheme, const PrepareOptions& options = {});

}  // namespace posenc
