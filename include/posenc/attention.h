#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc {

/// What attention is told beside its tensors; every field has a default.
///
/// Query i and key j are counted as they stand in their tensors. The queries are the last tokens of the keys: query i
/// stands beside key i + keys − queries, so that one query and a cache of keys is a step of decoding. Lengths and
/// packed sequences say the same of each sequence on its own.
struct AttentionOptions {
  /// How position enters: Nothing, a Rotation (q and k are rotated as they are loaded) or a Bias (added to the
  /// scores). An Addition belongs to the embeddings, before q and k are made of them: it is refused here; use add().
  Form position = Nothing{};
  bool causal = false;      ///< no query looks at keys after the one it stands beside
  std::int64_t window = 0;  ///< n: only at keys less than n away from the one it stands beside; 0: at all
  /// Of q·k; unset: 1/√features (T5 wants 1). The form's softmax_factor multiplies either.
  std::optional<double> scale = {};

  /// Where the tokens stand, for the position. Unset: 0, 1, 2 … in each sequence, queries at its end.
  std::optional<Positions> query_positions = {}, key_positions = {};
  bool keys_are_rotated = false;  ///< the cache holds keys that were rotated when they came

  /// [batch]: the sequences end earlier than the tensor; queries past the end give zeros, keys there are not read.
  std::span<const std::int64_t> query_lengths = {}, key_lengths = {};
  /// Several sequences, one after another, on the sequence axis: {3, 5} is two, which do not see each other.
  /// packed_keys unset: the same. Excludes query_lengths and key_lengths.
  std::span<const std::int64_t> packed = {}, packed_keys = {};
  /// [batch, keys]: a key with 0 is padding, which no query looks at.
  std::span<const std::int64_t> key_mask = {};

  /// Gradients on a GPU: the same bytes at every run, at a cost. On the host they always are.
  bool is_repeatable = false;

  /// Written too, where they have data.
  TensorView weights = {};  ///< [batch, heads, queries, keys], the type of out: for small inputs, it is n × n
  TensorView logsumexp =
      {};  ///< [batch, heads, queries], f32 (f64 for f64): log Σ e^score; −inf where no key is seen
};

/// out = softmax(scale · q·kᵀ + bias) · v over the keys that each query may look at.
///
///   q    [batch, heads, queries, features]        k    [batch, key heads, keys, features]
///   out  [batch, heads, queries, value features]  v    [batch, key heads, keys, value features]
///
/// in any strides; without batch, or without batch and heads, as well. [batch, sequence, heads, features] in memory
/// is swap_axes(view(x, {b, s, h, d}), 1, 2). heads is a multiple of key heads: query head h looks at key head h /
/// (heads / key heads). All of one type: f32, f16 and bf16 with sums in f32, f64 with sums in f64. Memory is
/// O(queries + keys): no score is kept. Results do not depend on the number of threads. A query that may look at no
/// key gives zeros. A score of −inf weighs nothing. A query that meets a score of +inf or NaN gives NaN. Where v is
/// not finite at a key that a query looks at, neither is that feature of the result. Keys and values that are masked
/// are never seen, whatever they hold. Error: f32, at most 2e-6 · Σ weight · |v| while |scale · q·k| and the bias
/// stay below 16. Range: as rotate and bias for the form. Throws: Error for a shape, type, length, position or form
/// that does not fit; out is not touched then.
/// On a GPU from compute capability 8.0 on: f16 and bf16, 256 features at most, without position, with a rotation, with
/// slopes or with a table by distance of one axis; no weights. Anything else is an Error. k and v must be finite at every
/// key that some query of their sequence sees. Causal attention of as many queries as keys, 64 or 128 features and a table
/// to a distance of 256 has kernels of its own for compute capability 9.0. Weights, and rotated q and k, are rounded to the
/// inputs' type. Error: 4e-3, relative to the norm of the result. It borrows memory on the stream: 8 bytes, the table for
/// each head and distance, rotated q and k with a rotation, and for few queries over many keys, partial sums.
void attention(TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
               const AttentionOptions& options = {}, const Run& run = {});

/// What attention took, and optionally what it gave: where they are absent, they are made again.
struct AttentionInputs {
  ConstTensorView q, k, v;
  ConstTensorView out = {}, logsumexp = {};
};

/// Where the gradients go; what has no data is left out. Those of q, k and v are written; those of the position's
/// parameters are added to, as learned parameters are shared by layers.
struct AttentionGradients {
  TensorView q = {}, k = {}, v = {};
  TensorView parameters = {};     ///< of the bias, as bias_backward has them: [heads], [rows, heads] or [n]
  TensorView query_vectors = {};  ///< of DistanceVectors' for_queries, in the shape of its table
  TensorView key_vectors = {};    ///< of its for_keys
};

/// The gradients of attention, from that of its output: d_out has the shape and type of out. Scores are made again,
/// not stored: memory is O(queries + keys).
/// Range: q, k, v and d_out finite, also where they are masked but for what lies past the lengths.
/// Throws: as attention, and for a gradient that the position does not have.
/// On a GPU: what attention does there; gradients of slopes and tables. Those of q, k and v are within 8e-3 of exact ones,
/// those of parameters within 2e-2, relative to their norms. On compute capability 9.0 dq is summed in the order in which
/// blocks arrive, so that its last bits vary from run to run, unless the options ask for the same bytes; sums for parameters
/// always are. It borrows, on the stream, 4 bytes for each element of q and 8 for each row, and what attention borrows; where
/// out or logsumexp is absent, room for it.
void attention_backward(const AttentionGradients& gradients, ConstTensorView d_out, const AttentionInputs& inputs,
                        const AttentionOptions& options = {}, const Run& run = {});

}  // namespace posenc
