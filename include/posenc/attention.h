#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc {

/// What attention is told beside its tensors; every field has a default.
///
/// Query i and key j are indices into their tensors. The queries are the last tokens of the keys: query i is the token
/// of key i + keys − queries, so that one query and a cache of keys is a decoding step. With lengths or packed
/// sequences the same holds for each sequence.
///
/// score = softcap(scale · temperature · q·k) + bias + mask, then the softmax over keys and the sink. What vectors by
/// distance add is inside the softcap.
struct AttentionOptions {
  /// How position enters: Nothing, a Rotation (q and k are rotated as they are loaded) or a Bias (added to the
  /// scores). An Addition belongs to the embeddings, before q and k are made of them: it is refused here; use add().
  Form position = {};
  /// The order of the axes of out, q, k, v and their gradients: Axes::kBshd for [batch, sequence, heads, features]. Unset:
  /// heads first.
  std::optional<Axes> axes = {};
  bool causal = false;      ///< a query sees no key after its own token
  std::int64_t window = 0;  ///< n: a query sees only keys less than n tokens away; 0: all
  /// n: a query sees only the keys of its own chunk: positions c·n to (c + 1)·n − 1 (Llama 4); 0: all. Positions must be
  /// consecutive.
  std::int64_t chunk = 0;
  /// Of q·k; unset: 1/√features (T5 needs 1). The form's softmax_factor multiplies either.
  std::optional<double> scale = {};
  double softcap = 0;  ///< c: scaled scores become c · tanh(score / c) (Gemma 2); 0: unchanged
  /// Multiplies queries by a factor of their position (on the first axis), beside any form. A form that is a
  /// temperature itself (Nothing with one) excludes it.
  std::optional<Temperature> temperature = {};
  /// [heads], f32, f64, f16 or bf16: a logit per head that joins every softmax and has no value (gpt-oss). The weights
  /// of the keys then sum to less than 1.
  ConstTensorView sinks = {};
  /// Broadcast to [batch, heads, queries, keys], from the right: bool (false hides the key) or f32, f64, f16, bf16
  /// (added to the score; −inf hides the key). For trees of drafts and any other pattern. In a paged cache there are
  /// pages of a sequence · page size keys.
  ConstTensorView mask = {};
  /// [batch, heads, queries, features of the vectors], in q's type and order of axes: what a form's vectors by distance
  /// meet in place of q, where it says so (relative-logits). The temperature multiplies them too.
  ConstTensorView position_queries = {};
  /// [batch, heads, keys], f32, f64, f16 or bf16; [batch, keys, heads] where axes say that heads come last: the logarithm of
  /// each token's gate, for a form that adds their sums (forget-gate). Finite; past the last key that is seen, not read.
  /// The gate of a masked key counts too. Sums are made in double.
  ConstTensorView log_gates = {};

  /// The positions of the tokens. Unset: 0, 1, 2 … in each sequence, queries at its end.
  std::optional<Positions> query_positions = {}, key_positions = {};
  bool keys_are_rotated = false;  ///< the cache holds keys that were rotated when they came
  /// f16 and bf16: rotated q and k are rounded to their type, as rotate rounds them, and as they are where a cache holds
  /// rotated keys. On the host they keep the precision of sums otherwise, which takes three products of bf16 for each score
  /// where rounded ones take one. On a GPU they are always rounded.
  bool rounds_rotated = false;

  /// [batch]: the sequences end earlier than the tensor; queries past the end give zeros, keys there are not read.
  std::span<const std::int64_t> query_lengths = {}, key_lengths = {};
  /// Several sequences, one after another, on the sequence axis: {3, 5} is two, which do not see each other.
  /// packed_keys unset: the same. Excludes query_lengths and, without a block_table, key_lengths.
  std::span<const std::int64_t> packed = {}, packed_keys = {};
  /// [batch, keys]: a key with 0 is padding, which no query sees.
  std::span<const std::int64_t> key_mask = {};
  /// [batch, pages of a sequence]: a paged cache, as vLLM's. k and v are pools of pages, [pages, key heads, page size,
  /// features] in any strides (vLLM's memory is swap_axes(view(pool, {pages, page size, key heads, features}), 1, 2)),
  /// and token t of sequence b is token t mod page size of page block_table[b, t / page size]. Needs key_lengths. Entries for
  /// tokens that no query sees may hold anything, as −1: past a length, and before a window or chunk.
  ///
  /// With packed queries (continuous batching, on the host): q is [heads, tokens of all sequences, features], packed has as
  /// many lengths as key_lengths, 0 where a sequence has no query now, and query i of all is a row of out, mask, weights,
  /// logsumexp and position_queries; block_table, key_lengths, key_mask, key_positions and log_gates have a row for each
  /// sequence. query_positions are ids, [axes, tokens of all sequences], or unset: each sequence's last. Neighbours with as
  /// many queries are computed together: put decoding sequences side by side.
  std::span<const std::int32_t> block_table = {};
  /// On a GPU, in place of key_lengths and block_table: the same numbers in its memory, i32, as vLLM's and FlashAttention's.
  /// Kernels read them when they run, so that nothing is copied, nothing waits, and a CUDA graph sees what they hold at each
  /// launch. For attention without packed sequences, query_lengths or chunk, and without gradients; with a rotation,
  /// query_positions are given and keys are rotated already. A length that is negative or past the cache is taken as 0, a page
  /// that is not there as page 0, and the next synchronize says so.
  std::span<const std::int32_t> device_key_lengths = {}, device_block_table = {};

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
/// in any strides; without batch, or without batch and heads, as well; in another order as options.axes says. heads is a
/// multiple of key heads: query head h reads key head h / (heads / key heads). k and v have one type; q has it too, or
/// is f32 beside a cache of f16 or bf16; out has q's. Sums are f32 for f32, f16 and bf16, and f64 for f64. Memory is
/// O(queries + keys): no score is kept. Results do not depend on the number of threads. A query that may look at no
/// key gives zeros. A score of −inf weighs nothing. A query that meets a score of +inf or NaN gives NaN. Where v is
/// not finite at a key that a query looks at, neither is that feature of the result. Keys and values that are masked
/// are never seen, whatever they hold. Error: f32, at most 2e-6 · Σ weight · |v| while |scale · q·k| and the bias
/// stay below 16. f16 and bf16: half an ulp of the result more, and, where the machine multiplies bf16 itself and the result
/// is not f32, what two bf16 leave of a number: 2^-17 · Σ weight · |v| where few queries read a cache of bf16 (arm64's
/// BFDOT), and for more queries (BFMMLA, x86-64's AMX) 2^-15 · Σ weight · |v| and, with q or k in f16 or rotated here (and
/// not rounded), another 2^-14 · scale · |q| · |k| of it. Sums of gates: 2^-46 of the largest sum more in a score (2^-51 for
/// f64); contextual positions: 2^-22 · keys · the largest step between rows. Range: as rotate and bias for the form. Throws:
/// Error for a shape, type, length, position or form that does not fit; out is not touched then.
/// On a GPU from compute capability 8.0 on: f32, f16 and bf16, 256 features at most, without position, with a rotation, with
/// slopes or with a table by distance of one axis; windows, chunks, lengths, packed sequences, padding and pages (where keys
/// are rotated already); no weights. Anything else is an Error. k and v must be finite at every key that some query of their
/// sequence sees. Causal attention of as many queries as keys, 64 or 128 features and a table
/// to a distance of 256 has kernels of its own for compute capability 9.0. Of 16 bits, weights, and rotated q and k, are
/// rounded to the inputs' type. Error, relative to the norm of the result: 4e-3, and 4e-6 for f32. It borrows memory on the
/// stream: 8 bytes, the table for each head and distance, rotated q and k with a rotation (or k, and 4 bytes for each token
/// and feature), lengths and masks of the host's, and for few queries over many keys, partial sums and the block table.
/// Tensors on the host go there where the backend is forced to cuda, but for f64, a few heads at a time.
void attention(TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
               const AttentionOptions& options = {}, const Run& run = {});

/// What attention took, and optionally what it gave: where they are absent, they are made again.
struct AttentionInputs {
  ConstTensorView q, k, v;
  ConstTensorView out = {}, logsumexp = {};
};

/// Attention made ready for many calls with the same options and shapes, such as the steps of a decoder, on the host.
class AttentionPlan {
 public:
  AttentionPlan(AttentionPlan&&) noexcept;
  AttentionPlan& operator=(AttentionPlan&&) noexcept;
  ~AttentionPlan();

 private:
  struct Made;
  explicit AttentionPlan(Made* made) noexcept;
  friend AttentionPlan plan_attention(const AttentionInputs&, const AttentionOptions&);
  friend std::size_t workspace_bytes(const AttentionPlan&, int);
  friend void attention(const AttentionPlan&, TensorView, ConstTensorView, ConstTensorView, ConstTensorView,
                        const Run&);
  Made* made_;  // owned
};

/// A plan for tensors of these shapes and types; their data is not read. The plan copies the options, and refers to the
/// spans and tensors in them, which are read at each call: a decoder changes key_lengths, block_table and ids in place.
/// Throws: as attention, for what can be known now, and for packed queries over pages.
AttentionPlan plan_attention(const AttentionInputs& like, const AttentionOptions& options = {});

/// The bytes that Run::workspace needs for a call of the plan on so many threads, 0: threads(), whatever the lengths while no
/// sequence has fewer keys than queries; the call allocates where one has.
std::size_t workspace_bytes(const AttentionPlan& plan, int threads = 0);

/// attention with the options of a plan. With a workspace, in f32, f16 and bf16 and without weights, the cpu backend
/// allocates nothing (where Run has no pool, the library's own threads may, when they start).
///
///   const AttentionPlan step = plan_attention({q, k_cache, v_cache}, options);   // once
///   std::vector<std::byte> workspace(workspace_bytes(step, 4));
///   attention(step, out, q, k_cache, v_cache, {.threads = 4, .workspace = workspace});
///
/// Calls with different workspaces may run at the same time.
/// Throws: as attention, and for shapes and types other than the plan's, a workspace that is too small, and a plan that was
/// moved away.
void attention(const AttentionPlan& plan, TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
               const Run& run = {});

/// The bytes that Run::workspace needs for such a call on a GPU, which is only planned: nothing is done there, and no data is
/// read but lengths and tables of the host's. With a workspace of memory of the GPU's, at a multiple of 256 bytes, a call
/// borrows nothing, so that calls on one stream can share it; a call that needs more throws. For out and gradients of the
/// alignment of q.
std::size_t workspace_bytes(const AttentionInputs& inputs, const AttentionOptions& options = {});

/// Where the gradients go; what has no data is left out. Those of q, k and v are written, in the type of their tensor
/// or in f32, with zeros past the lengths; they may be parts of one tensor, as [tokens, heads of q, k and v, features], sliced.
/// Those of the position's parameters are added to, as learned parameters are shared by layers.
struct AttentionGradients {
  TensorView q = {}, k = {}, v = {};
  TensorView parameters = {};        ///< of the bias, as bias_backward has them: [heads], [rows, heads] or [n]
  TensorView query_vectors = {};     ///< of DistanceVectors' for_queries or CountedGates' table, in its shape
  TensorView key_vectors = {};       ///< of its for_keys
  TensorView value_vectors = {};     ///< of its for_values
  TensorView query_offsets = {};     ///< [heads, features]
  TensorView sinks = {};             ///< [heads], added to as well
  TensorView position_queries = {};  ///< written, in the shape of the option
  TensorView log_gates = {};         ///< written, in the shape of the option
};

/// A query tensor and its gradient, of one shape.
struct QueryGradient {
  ConstTensorView q, d_q;
};

/// The gradients of attention, from that of its output: d_out has the shape and type of out. Scores are made again,
/// not stored: memory is O(queries + keys).
/// Range: q, k, v and d_out finite, also where they are masked but for what lies past the lengths.
/// Throws: as attention, and for a gradient that the position does not have.
/// On a GPU: what attention does there in f16 and bf16; gradients of slopes and tables. Those of q, k and v are within 8e-3 of exact ones,
/// those of parameters within 2e-2, relative to their norms. On compute capability 9.0 dq is summed in the order in which
/// blocks arrive, so that its last bits vary from run to run, unless the options ask for the same bytes; sums for parameters
/// always are. It borrows, on the stream, 4 bytes for each element of q and 8 for each row, and what attention borrows; where
/// out or logsumexp is absent, room for it.
void attention_backward(const AttentionGradients& gradients, ConstTensorView d_out, const AttentionInputs& inputs,
                        const AttentionOptions& options = {}, const Run& run = {});
/// The bytes that Run::workspace needs for it on a GPU, as above.
std::size_t workspace_bytes(const AttentionGradients& gradients, ConstTensorView d_out, const AttentionInputs& inputs,
                            const AttentionOptions& options = {});

/// The gradient of a temperature's scale, or of each head's, from that of q as attention_backward makes it: d_scales is
/// [1] or [heads], f32 or f64, and is added to; q and d_q are [batch, heads, queries, features] on the host. Sums are
/// made in double, in the order of batch, heads and queries.
/// Throws: Error for a shape, type or position that does not fit, and for a factor of 0, where d_q says nothing of it.
void temperature_backward(TensorView d_scales, const QueryGradient& query, const Positions& positions,
                          const Temperature& temperature);

}  // namespace posenc
