#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/compiled_once.h"
#include "posenc/prepare_options.h"
#include "posenc/schemes/choice.h"
#include "posenc/schemes/rope_scaling.h"

namespace posenc {

template <> struct ChoiceNames<PairLayout> {
  static constexpr std::array<std::string_view, 4> value = {"halves", "interleaved", "interleaved-to-halves",
                                                            "halves-to-interleaved"};
};

/// Which axis of a position drives which pair, and with which frequency; s are the sections, d the dims.
enum class SectionOrder : std::uint8_t {
  kChunked,      ///< s_0 pairs by axis 0, then s_1 by axis 1 …: Qwen2-VL, GLM-4V (with interleaved pairs), XD-RoPE
  kInterleaved,  ///< pair i by axis i mod n while i < n·s_axis, all others by axis 0: Qwen3-VL
  kAlternating,  ///< all sections but the first alternate, axis 1 first; then s_0 pairs by axis 0: Ernie 4.5 VL
  kEvenOdd,      ///< axis a has the frequencies a, a + n, a + 2n … of all: Pixtral
  /// Axial RoPE: each axis has s_a pairs with frequencies of its own, base^(−2j/(2 s_a)): the vision parts of Qwen2-VL
  /// and others, and with unequal axes FLUX, Wan, HunyuanVideo, Qwen-Image.
  kRestarting,
  kBlocks,  ///< the same, and each axis is a block of features with its own pairs: Gemma 4's vision part
};
template <> struct ChoiceNames<SectionOrder> {
  static constexpr std::array<std::string_view, 6> value = {"chunked",  "interleaved", "alternating",
                                                            "even-odd", "restarting",  "blocks"};
};

/// Rotary position: each pair of features of a query or key is rotated by an angle that grows with position, so that
/// position enters the score of two tokens only through their offset.
///
///   (a_i, b_i) → magnitude · (a_i cos pω_i − b_i sin pω_i,  b_i cos pω_i + a_i sin pω_i),   ω_i = base^(−2i/dims)
///
/// Su et al., 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding". With sections a position has
/// several axes (time, height, width), and each pair is driven by one of them (M-RoPE).
struct Rope {
  static constexpr std::string_view name = "rope";
  static constexpr std::string_view family = "rotation";
  static constexpr std::string_view formula = "pairs of q and k rotated by p·w_i, w_i = base^(-2i/dims)";
  static constexpr std::string_view used_by =
      "Llama, Mistral, Qwen, Gemma, DeepSeek, GLM, Phi, GPT-NeoX, GPT-J, FLUX, Wan";

  std::int64_t dims = 128;
  double base = 10000.0;
  PairLayout layout = PairLayout::kHalves;
  std::int64_t sign = 1;
  std::int64_t first_dim = 0;
  std::vector<std::int64_t> sections = {};
  SectionOrder section_order = SectionOrder::kChunked;
  Boxed<RopeScaling> scaling = {};  ///< default: no scaling; read it as *scaling

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("dims", &Rope::dims, "rotary dimensions per head (rotary_dim); even");
    visit("base", &Rope::base, "base of the frequencies base^(-2i/dims) (rope_theta)");
    visit("layout", &Rope::layout, "which features form a pair, before and after");
    visit("sign", &Rope::sign, "1: counter-clockwise, as usual; -1: clockwise (nanochat)");
    visit("first_dim", &Rope::first_dim,
          "first rotary dimension; negative: counted from the end of the head (MLA: -dims)");
    visit("sections", &Rope::sections, "pairs per position axis (M-RoPE); empty: all pairs use one axis");
    visit("section_order", &Rope::section_order, "how sections are assigned to pairs");
    visit("scaling", &Rope::scaling, "context extension beyond the trained length (posenc list --scalings)");
  }
  static constexpr bool takes_fractions = true;
  LengthNeed needs_length() const;
  template <class Draw> bool draw_trained(Draw&& next) {
    const std::int64_t pairs = dims / 2;
    const auto ask = [&](auto& one) {
      if constexpr (requires { one.draw_trained(next, pairs); }) return one.draw_trained(next, pairs);
      return false;
    };
    return std::visit(ask, scaling.operator*());  // *scaling would instantiate the variant here
  }
  bool operator==(const Rope&) const = default;
};

/// Range: dims even, 2 to 2^20; base above 1 up to 1e36; sign 1 or −1; sections that sum to dims/2 (for even-odd
///   and blocks: that are equal); first_dim from −2^20 to 2^20; factors above 0.
/// Throws: Error that names field, value and rule; also where the scaling depends on the length and `now` has none.
Rotation prepare(const Rope& scheme, const PrepareOptions& options = {});

}  // namespace posenc
