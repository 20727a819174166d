#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace posenc {

// Ways to extend rotary position beyond the length a model was trained on. Each is a plain value; its formula is the
// function of the same name in src/schemes/scalings/. ω_i = base^(−2i/d) throughout, i the pair, d the dims.
// `needs_length` marks those that require PrepareOptions::length; `draw_trained` fills lists that are searched per model.

/// ω_i unchanged.
struct NoScaling {
  static constexpr std::string_view name = "none";
  static constexpr std::string_view formula = "w_i unchanged";
  template <class Visitor> static void fields(Visitor&&) {}
  bool operator==(const NoScaling&) const = default;
};

/// ω_i / factor: every position is divided by the factor. Chen et al., 2023, "Extending Context Window … via Position Interpolation".
struct LinearScaling {
  static constexpr std::string_view name = "linear";
  static constexpr std::string_view formula = "w_i / factor (position interpolation)";
  double factor = 1.0;
  template <class Visitor> static void fields(Visitor&& visit) {
    visit("factor", &LinearScaling::factor, "extended length / trained length");
  }
  bool operator==(const LinearScaling&) const = default;
};

/// A larger base, base · factor^(d/(d−2)): the slowest pair is slowed by factor, the fastest not at all.
/// bloc97, 2023, "NTK-Aware Scaled RoPE".
struct NtkScaling {
  static constexpr std::string_view name = "ntk";
  static constexpr std::string_view formula =
      "base·factor^(d/(d-2)): divides the lowest frequency by factor and keeps the highest";
  double factor = 1.0;
  template <class Visitor> static void fields(Visitor&& visit) {
    visit("factor", &NtkScaling::factor, "extended length / trained length");
  }
  bool operator==(const NtkScaling&) const = default;
};

/// (base · factor)^(−2i/d) · factor^(−2/d): every pair is slowed, the fastest by factor^(2/d), the slowest by factor.
/// Su, 2023, "Transformer Upgrade Path 11"; what vLLM calls ntk.
struct NtkFixedScaling {
  static constexpr std::string_view name = "ntk-fixed";
  static constexpr std::string_view formula =
      "(base·factor)^(-2i/d)·factor^(-2/d): divides the highest frequency by factor^(2/d), the lowest by factor";
  double factor = 1.0;
  template <class Visitor> static void fields(Visitor&& visit) {
    visit("factor", &NtkFixedScaling::factor, "extended length / trained length");
  }
  bool operator==(const NtkFixedScaling&) const = default;
};

/// ntk with a factor that depends on the current length: base · (factor · L/original_length − (factor − 1))^(d/(d−2)),
/// where L is the larger of the sequence length and original_length. Needs a length. Hugging Face's "dynamic".
struct DynamicScaling {
  static constexpr std::string_view name = "dynamic";
  static constexpr std::string_view formula =
      "ntk with a factor that grows with the sequence beyond the trained length";
  static constexpr bool needs_length = true;
  double factor = 1.0;
  std::int64_t original_length = 2048;
  template <class Visitor> static void fields(Visitor&& visit) {
    visit("factor", &DynamicScaling::factor, "how fast the factor grows beyond the trained length");
    visit("original_length", &DynamicScaling::original_length, "trained length (original_max_position_embeddings)");
  }
  bool operator==(const DynamicScaling&) const = default;
};

/// base · alpha^(d/(d−2)), at every length: Hunyuan's "dynamic" with alpha.
struct AlphaScaling {
  static constexpr std::string_view name = "alpha";
  static constexpr std::string_view formula = "base·alpha^(d/(d-2)), at every length";
  double alpha = 1.0;
  template <class Visitor> static void fields(Visitor&& visit) {
    visit("alpha", &AlphaScaling::alpha, "the base is multiplied by alpha^(d/(d-2))");
  }
  bool operator==(const AlphaScaling&) const = default;
};

/// Fast pairs are kept, slow ones are slowed by factor, and those in between are blended; cosines and sines are scaled up
/// slightly.
///   c(r) = d · ln(original_length / (2πr)) / (2 ln base), low = c(beta_fast), high = c(beta_slow),
///   ramp_i = (i − low)/(high − low) within [0, 1],  ω'_i = ω_i/factor · ramp_i + ω_i · (1 − ramp_i)
///   magnitude: attention_factor if given; g(mscale)/g(mscale_all_dim) if both are; else g(1);
///   g(m) = 0.1 · m · ln(factor) + 1.   softmax factor: g(mscale_all_dim)² where mscale_all_dim is given (DeepSeek)
/// Peng et al., 2023, "YaRN: Efficient Context Window Extension of Large Language Models".
struct YarnScaling {
  static constexpr std::string_view name = "yarn";
  static constexpr std::string_view formula =
      "keeps high frequencies, divides low ones by factor, blends between; scales cos and sin up a little";
  double factor = 1.0;
  std::int64_t original_length = 4096;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;
  std::optional<double> attention_factor = {};
  std::optional<double> mscale = {};
  std::optional<double> mscale_all_dim = {};
  bool mscale_on_softmax = true;
  template <class Visitor> static void fields(Visitor&& visit) {
    visit("factor", &YarnScaling::factor, "extended length / trained length");
    visit("original_length", &YarnScaling::original_length, "trained length (original_max_position_embeddings)");
    visit("beta_fast", &YarnScaling::beta_fast, "pairs with more turns than this within the trained length are kept");
    visit("beta_slow", &YarnScaling::beta_slow, "pairs with fewer turns than this are divided by factor");
    visit("truncate", &YarnScaling::truncate, "round the ends of the ramp to whole pairs (gpt-oss: false)");
    visit("attention_factor", &YarnScaling::attention_factor, "magnitude of cos and sin (default: from the formula)");
    visit("mscale", &YarnScaling::mscale, "coefficient of the magnitude (DeepSeek)");
    visit("mscale_all_dim", &YarnScaling::mscale_all_dim, "coefficient of the softmax factor (DeepSeek)");
    visit("mscale_on_softmax", &YarnScaling::mscale_on_softmax,
          "mscale_all_dim scales the softmax as well (Ministral 3: false)");
  }
  bool operator==(const YarnScaling&) const = default;
};

/// ω_i divided by a factor per pair that was found by search: one list up to the trained length and one beyond it. Needs a
/// length; prepare once per sequence, so that its cached keys stay valid.
///   magnitude: attention_factor if given; else √(1 + ln(factor)/ln(original_length)), 1 for factor ≤ 1; for both lists
/// Ding et al., 2024, "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens".
struct LongropeScaling {
  static constexpr std::string_view name = "longrope";
  static constexpr std::string_view formula =
      "w_i / factor_i, with one searched list of factors for short and one for long sequences";
  static constexpr bool needs_length = true;
  double factor = 1.0;
  std::int64_t original_length = 4096;
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};
  std::optional<double> attention_factor = {};
  template <class Visitor> static void fields(Visitor&& visit) {
    visit("factor", &LongropeScaling::factor, "extended length / trained length");
    visit("original_length", &LongropeScaling::original_length, "trained length (original_max_position_embeddings)");
    visit("short_factors", &LongropeScaling::short_factors, "divisor of each frequency, up to the trained length");
    visit("long_factors", &LongropeScaling::long_factors, "divisor of each frequency, beyond the trained length");
    visit("attention_factor", &LongropeScaling::attention_factor,
          "magnitude of cos and sin (default: from the formula)");
  }
  /// Searched factors lie above 1.
  template <class Draw> bool draw_trained(Draw&& next, std::int64_t pairs) {
    if (!short_factors.empty() || !long_factors.empty()) return false;
    for (std::vector<double>* const factors : {&short_factors, &long_factors}) {
      for (std::int64_t i = 0; i < pairs && i < 1 << 20; ++i) factors->push_back(2 + next());
    }
    return true;
  }
  bool operator==(const LongropeScaling&) const = default;
};

/// By wavelength λ = 2π/ω: pairs with λ < original_length/high_freq_factor are kept, those with
/// λ > original_length/low_freq_factor are slowed by factor, and those in between are blended. Meta, 2024, Llama 3.1.
struct Llama3Scaling {
  static constexpr std::string_view name = "llama3";
  static constexpr std::string_view formula =
      "by wavelength: keeps w_i if short, divides it by factor if long, blends between";
  double factor = 8.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  std::int64_t original_length = 8192;
  template <class Visitor> static void fields(Visitor&& visit) {
    visit("factor", &Llama3Scaling::factor, "divisor of the low frequencies");
    visit("low_freq_factor", &Llama3Scaling::low_freq_factor,
          "pairs with fewer turns within the trained length are divided");
    visit("high_freq_factor", &Llama3Scaling::high_freq_factor,
          "pairs with more turns within the trained length are kept");
    visit("original_length", &Llama3Scaling::original_length, "trained length (original_max_position_embeddings)");
  }
  bool operator==(const Llama3Scaling&) const = default;
};

/// Only the first ⌊proportion · d/2⌋ pairs rotate, at the frequencies they have for all d; the rest have frequency 0.
/// Unlike with a smaller `dims`, the features of a pair stay d/2 apart. Google, 2026, Gemma 4's global layers.
struct ProportionalScaling {
  static constexpr std::string_view name = "proportional";
  static constexpr std::string_view formula =
      "only the first pairs rotate, at their usual frequencies; the others have frequency 0";
  double proportion = 0.25;
  double factor = 1.0;
  template <class Visitor> static void fields(Visitor&& visit) {
    visit("proportion", &ProportionalScaling::proportion, "fraction of the pairs that rotate");
    visit("factor", &ProportionalScaling::factor, "extended length / trained length");
  }
  bool operator==(const ProportionalScaling&) const = default;
};

/// Queries shrink and keys grow with position, slow pairs least, so that scores decay with distance:
///   ζ_i = (2i + 0.4 d)/(1.4 d),  q · ζ_i^((p − centre)/scale_base),  k · ζ_i^(−(p − centre)/scale_base)
/// The centre is a field and does not depend on the length, so that cached keys stay valid.
/// Sun et al., 2022, "A Length-Extrapolatable Transformer".
struct XposScaling {
  static constexpr std::string_view name = "xpos";
  static constexpr std::string_view formula =
      "scales queries down and keys up with position, so that scores decay with distance";
  double scale_base = 512.0;
  std::int64_t centre = 0;
  template <class Visitor> static void fields(Visitor&& visit) {
    visit("scale_base", &XposScaling::scale_base, "positions per factor of ζ");
    visit("centre", &XposScaling::centre, "position at which the scale is 1");
  }
  bool operator==(const XposScaling&) const = default;
};

/// The one list of scalings. JSON, flags and the docs follow from it.
using RopeScaling = std::variant<NoScaling, LinearScaling, NtkScaling, NtkFixedScaling, DynamicScaling, AlphaScaling,
                                 YarnScaling, LongropeScaling, Llama3Scaling, ProportionalScaling, XposScaling>;

}  // namespace posenc
