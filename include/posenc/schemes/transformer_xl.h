#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/prepare_options.h"
#include "posenc/schemes/sinusoidal.h"

namespace posenc {

/// The sinusoids of the distance, after a trained projection, are dotted with the query. Two trained vectors per head
/// are added to the query: one for its products with keys, one for those with distances.
///
///   score(m, n) = scale · ((q_m + u)·k_n + (q_m + v)·(W s(m − n))),   s(d) = (sin d·w_i, cos d·w_i), w_i = base^(−2i/width)
///
/// Dai et al., 2019, "Transformer-XL"; transformers 5.16, models/xlnet/modeling_xlnet.py (sines, then cosines) and
/// models/parakeet/modeling_parakeet.py (interleaved, as in Conformers). s is not symmetric: the sines distinguish the
/// directions. With `clamp`, larger distances count as that distance. XLNet's segment term is not part of the position.
struct TransformerXl {
  static constexpr std::string_view name = "transformer-xl";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula = "((q+u).k + (q+v).W s(m-n)) / sqrt(D), s the sinusoids of the distance";
  static constexpr std::string_view used_by =
      "Transformer-XL, XLNet, Conformers (Parakeet, Nemotron ASR, wav2vec2-Conformer, SeamlessM4T, FastSpeech 2)";

  std::int64_t heads = 4;
  std::int64_t width = 512;
  double base = 10000.0;
  WaveLayout layout = WaveLayout::kSinCos;
  std::int64_t clamp = 0;
  std::vector<double> content_bias = {};
  std::vector<double> position_bias = {};

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("heads", &TransformerXl::heads, "attention heads");
    visit("width", &TransformerXl::width, "sines and cosines of a distance (d_model)");
    visit("base", &TransformerXl::base, "base of the frequencies");
    visit("layout", &TransformerXl::layout, "order of sines and cosines: sin-cos (XLNet), interleaved (Conformers)");
    visit("clamp", &TransformerXl::clamp, "distances beyond count as this one (clamp_len); 0: all differ");
    visit("content_bias", &TransformerXl::content_bias, "u, [heads, features] (r_w_bias, pos_bias_u); none: zeros");
    visit("position_bias", &TransformerXl::position_bias, "v, [heads, features] (r_r_bias, pos_bias_v); none: zeros");
  }
  LengthNeed needs_length() const { return clamp > 0 ? LengthNeed::kNone : LengthNeed::kDistances; }
  TrainedTable trained_table() const;
  bool operator==(const TransformerXl&) const = default;
};

/// W is the caller's, [heads, features, width]: prepare(TransformerXl{…}, {.length = 512, .weights = W}). The form holds
/// W s(d), computed here, for the distances |d| < length, or up to the clamp. Only attention can add it.
/// Range: heads 1 to 65536, width even, 2 to 2^20, base 1 to 1e36, length and clamp up to 2^20.
Bias prepare(const TransformerXl& scheme, const PrepareOptions& options = {});

/// The gradient of W, [heads, features, width], computed from that of the form's vectors, [heads, rows, features], which
/// attention_backward writes to query_vectors. `options` must be the PrepareOptions that was passed to prepare. attention_backward
/// computes the gradients of u and v itself: key_vectors, [heads, 1, features], and query_offsets.
/// Throws: Error if the number of values does not match.
std::vector<double> backward(const TransformerXl& scheme, const PrepareOptions& options,
                             std::span<const double> d_vectors);

}  // namespace posenc
