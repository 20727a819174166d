#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"
#include "posenc/schemes/choice.h"

namespace posenc {

/// How the frequencies ω_i are spaced between 1 and 1/base, for the k pairs of an axis with d features.
enum class Spacing : std::uint8_t {
  kPaper,      ///< ω_i = base^(−2i/d): Vaswani et al.
  kInclusive,  ///< ω_i = base^(−i/(k−1)): the last is exactly 1/base (tensor2tensor, fairseq, Whisper)
};
template <> struct ChoiceNames<Spacing> {
  static constexpr std::array<std::string_view, 2> value = {"paper", "inclusive"};
};

/// The order of sines and cosines within the features of one axis.
enum class WaveLayout : std::uint8_t {
  kInterleaved,  ///< [s c s c s c s c]
  kSinCos,       ///< [s s s s c c c c]
  kCosSin,       ///< [c c c c s s s s]
};
template <> struct ChoiceNames<WaveLayout> {
  static constexpr std::array<std::string_view, 3> value = {"interleaved", "sin-cos", "cos-sin"};
};

/// What happens if the width cannot be divided into pairs (and axes).
enum class OddWidth : std::uint8_t {
  kRefuse,  ///< an error
  kTrim,    ///< the number of pairs is rounded up and the last columns are dropped (XLM, Marian)
  kZero,    ///< the number of pairs is rounded down and the last columns are zero (tensor2tensor, fairseq)
};
template <> struct ChoiceNames<OddWidth> {
  static constexpr std::array<std::string_view, 3> value = {"refuse", "trim", "zero"};
};

/// Fixed sines and cosines of the position, added to the token. Each pair of features is like the hand of a clock; the
/// first pair is the fastest.
///
///   P(p, i) = scale · ( sin(p·ω_i), cos(p·ω_i) )
///
/// Vaswani et al., 2017, "Attention Is All You Need". With axes = 2 or 3 the features are split into equal
/// blocks, one per coordinate of an image or video grid: [ first axis | second axis | third axis ]. With `turns`, a
/// coordinate of 1 is one full turn of the first wave: P(2π·c), for fractional coordinates c from 0 to 1
/// (PrepareOptions::denominators). Carion et al., 2020, "End-to-End Object Detection with Transformers" (DETR).
struct Sinusoidal {
  static constexpr std::string_view name = "sinusoidal";
  static constexpr std::string_view family = "addition";
  static constexpr std::string_view formula = "x + (sin p·w_i, cos p·w_i), w_i = base^(-2i/width)";
  static constexpr std::string_view used_by =
      "the original Transformer, Marian, Whisper's encoder, ViT-MAE, DETR, SAM 3";

  std::int64_t width = 512;
  double base = 10000.0;
  Spacing spacing = Spacing::kPaper;
  WaveLayout layout = WaveLayout::kInterleaved;
  double scale = 1.0;
  OddWidth odd = OddWidth::kRefuse;
  std::int64_t axes = 1;
  bool turns = false;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("width", &Sinusoidal::width, "features per token (d_model)");
    visit("base", &Sinusoidal::base,
          "base of the frequencies; paper: longest / shortest wavelength = base^((width-2)/width)");
    visit("spacing", &Sinusoidal::spacing, "paper: w_i = base^(-2i/width); inclusive: w_i = base^(-i/(pairs-1))");
    visit("layout", &Sinusoidal::layout, "order of sines and cosines within an axis");
    visit("scale", &Sinusoidal::scale, "multiplies every value");
    visit("odd", &Sinusoidal::odd, "what to do with a width that does not divide into pairs");
    visit("axes", &Sinusoidal::axes, "coordinates per position: 1, or 2 and 3 for image and video grids");
    visit("turns", &Sinusoidal::turns, "coordinates run from 0 to 1: multiply them by 2 pi (DETR)");
  }
  static constexpr bool takes_fractions = true;
  bool operator==(const Sinusoidal&) const = default;
};

/// Range: width 1 to 2^20, base 1 to 1e36, finite scale, axes 1 to 3. Throws: also for `turns` with float32 numerics.
Addition prepare(const Sinusoidal& scheme, const PrepareOptions& options = {});

}  // namespace posenc
