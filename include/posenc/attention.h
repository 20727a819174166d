#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc {

/// The options of attention; every field has a default.
///
/// Query i and key j are indices into their tensors. The queries are the last tokens of the sequence: query i is the
/// same token as key i + keys − queries, so one query with a cache of keys is a decoding step. With lengths or packed
/// sequences, this holds within each sequence.
///
/// score = softcap(scale · temperature · q·k) + bias + mask, followed by the softmax over the keys and the sink. Terms
/// from vectors by distance (DistanceVectors) are added before the softcap.
struct AttentionOptions {
  /// How position enters: Nothing, a Rotation (q and k are rotated as they are loaded) or a Bias (added to the
  /// scores). An Addition is an error here: it belongs to the embeddings that q and k are computed from; use add().
  Form position = {};
  /// The order of the axes of out, q, k, v and their gradients, e.g. Axes::kBshd for [batch, sequence, heads,
  /// features]. Unset: heads before sequence.
  std::optional<Axes> axes = {};
  bool causal = false;      ///< a query attends to no key after its own token
  std::int64_t window = 0;  ///< n: a query attends only to keys less than n tokens away; 0: no limit
  /// n: a query attends only to keys in its own chunk, positions c·n to (c + 1)·n − 1 (Llama 4); 0: no chunks. Positions
  /// must be consecutive.
  std::int64_t chunk = 0;
  /// Multiplies q·k. Unset: 1/√features (T5 needs 1). The form's softmax_factor multiplies it in either case.
  std::optional<double> scale = {};
  double softcap = 0;  ///< c: scaled scores become c · tanh(score / c) (Gemma 2); 0: no cap
  /// Multiplies each query by a factor that depends on its position (on the first axis); works with any form, except
  /// one that is itself a temperature (Nothing with a temperature).
  std::optional<Temperature> temperature = {};
  /// [heads], f32, f64, f16 or bf16: one logit per head that takes part in every softmax but has no value vector
  /// (gpt-oss), so the weights of the keys sum to less than 1.
  ConstTensorView sinks = {};
  /// Broadcast to [batch, heads, queries, keys] as in NumPy: bool (false masks the key) or f32, f64, f16, bf16 (added
  /// to the score; −inf masks the key). For draft trees and any other pattern. With a paged cache, `keys` is the number
  /// of pages per sequence × page size.
  ConstTensorView mask = {};
  /// [batch, heads, queries, features of the vectors], in q's type and axis order: multiplied with the form's vectors by
  /// distance in place of q, for forms that require it (DistanceVectors::has_own_queries; relative-logits). The
  /// temperature multiplies them too.
  ConstTensorView position_queries = {};
  /// [batch, heads, keys], or [batch, keys, heads] if `axes` puts heads after the sequence; f32, f64, f16 or bf16: the
  /// logarithm of each token's gate, for a form that adds sums of them (forget-gate). Must be finite; entries past the
  /// last visible key are not read. The gate of a masked key counts too. Sums are computed in double.
  ConstTensorView log_gates = {};

  /// The positions of the tokens. Unset: 0, 1, 2, … in each sequence, with the queries at its end.
  std::optional<Positions> query_positions = {}, key_positions = {};
  bool keys_are_rotated = false;  ///< k was rotated before (a KV cache of rotated keys); only q is rotated here
  /// For f16 and bf16: round rotated q and k to their own type, as rotate does and as a cache of rotated keys stores them.
  /// Otherwise, on the host, rotated values keep the precision of the sums, which costs three bf16 products per score
  /// instead of one where the processor has a bf16 matrix unit. On a GPU they are always rounded.
  bool rounds_rotated = false;

  /// [batch]: the length of each sequence, if shorter than the tensor. Queries past the end give zeros; keys past the end
  /// are not read.
  std::span<const std::int64_t> query_lengths = {}, key_lengths = {};
  /// The lengths of several sequences packed one after another along the sequence axis: {3, 5} is two sequences, which
  /// do not attend to each other. packed_keys unset: the same as packed. Cannot be combined with query_lengths, nor with
  /// key_lengths unless there is a block_table.
  std::span<const std::int64_t> packed = {}, packed_keys = {};
  /// [batch, keys]: 0 marks a key as padding, which no query attends to.
  std::span<const std::int64_t> key_mask = {};
  /// [batch, pages per sequence]: the block table of a paged cache, as in vLLM. k and v are pools of pages, [pages, key
  /// heads, page size, features] in any strides (for vLLM's memory layout, swap_axes(view(pool, {pages, page size, key
  /// heads, features}), 1, 2)); token t of sequence b is token t mod page size of page block_table[b, t / page size].
  /// Requires key_lengths. Entries whose tokens no query attends to (past a length, or before a window or chunk) may hold
  /// any value, such as −1.
  ///
  /// With packed queries (continuous batching; host only), q is [heads, tokens of all sequences, features]. `packed` has
  /// one length per sequence, like key_lengths, and may be 0 for a sequence without queries in this call. out, mask,
  /// weights, logsumexp and position_queries have one row per packed query; block_table, key_lengths, key_mask,
  /// key_positions and log_gates have one row per sequence. query_positions must be ids, [axes, tokens of all sequences],
  /// or unset, in which case the queries are the last tokens of their sequence. Adjacent sequences with equal numbers of
  /// queries are computed together, so place decoding sequences side by side.
  std::span<const std::int32_t> block_table = {};
  /// On a GPU, in place of key_lengths and block_table: the same numbers in GPU memory, i32, as vLLM and FlashAttention
  /// keep them. Kernels read them when they run: nothing is copied, the host does not wait, and a CUDA graph sees their
  /// current values at each launch. Not supported with packed sequences, query_lengths, chunk or gradients; a rotation
  /// requires query_positions and keys that are already rotated. A length that is negative or exceeds the cache counts as
  /// 0 and a page out of range as page 0; the next synchronize reports it.
  std::span<const std::int32_t> device_key_lengths = {}, device_block_table = {};

  /// Make gradients on a GPU bitwise reproducible, at some cost in speed. On the host they always are.
  bool is_repeatable = false;

  /// Further outputs, written if they have data.
  TensorView weights = {};  ///< [batch, heads, queries, keys], out's type; quadratic in size, so for small inputs
  TensorView logsumexp =
      {};  ///< [batch, heads, queries], f32 (f64 for f64): log Σ e^score; −inf for a query with no visible key
};

/// out = softmax(scale · q·kᵀ + bias) · v over the keys that each query may attend to.
///
///   q    [batch, heads, queries, features]        k    [batch, key heads, keys, features]
///   out  [batch, heads, queries, value features]  v    [batch, key heads, keys, value features]
///
/// in any strides. The batch axis, or the batch and head axes, may be absent; options.axes allows other axis orders.
///
/// - Heads: `heads` is a multiple of `key heads`, and query head h reads key head h / (heads / key heads) (GQA, MQA).
/// - Types: k and v have the same type; q has that type too, or is f32 with an f16 or bf16 cache; out has q's type. Sums
///   are f32 for f32, f16 and bf16, and f64 for f64.
/// - Memory is O(queries + keys); scores are not stored. Results do not depend on the number of threads.
/// - Special values: a query with no visible key gives zeros. A score of −inf has weight 0. A score of +inf or NaN makes
///   its query's result NaN. A non-finite value at a visible key makes that feature of the result non-finite. Masked keys
///   and values have no effect, whatever they hold.
///
/// Error: f32: at most 2e-6 · Σ weight · |v| while |scale · q·k| and the bias stay below 16. f16 and bf16: another half
///   ulp of the result, and, if the processor multiplies bf16 in hardware and the result is not f32, the error of
///   representing a number as the sum of two bf16: for few queries over a bf16 cache (arm64's BFDOT) 2^-17 · Σ weight · |v|;
///   for more queries (BFMMLA, x86-64's AMX) 2^-15 · Σ weight · |v|, and with q or k in f16, or rotated here without
///   rounds_rotated, another 2^-14 · scale · |q| · |k| of that sum. Sums of gates add 2^-46 of the largest sum to the error
///   of a score (2^-51 for f64), contextual positions 2^-22 · keys · the largest step between rows.
/// Range: as rotate and bias for the form.
/// Throws: Error for a shape, type, length, position or form that does not fit; out is then left unchanged.
///
/// On a GPU (compute capability 8.0 or newer): f32, f16 and bf16, at most 256 features; no position, a rotation, slopes or
/// a table by distance on one axis; windows, chunks, lengths, packed sequences, padding, and pages of keys that are
/// already rotated; `weights` cannot be written. Anything else is an Error. k and v must be finite at every key that some
/// query of their sequence attends to. Compute capability 9.0 has dedicated kernels for causal attention with as many
/// queries as keys, 64 or 128 features and tables up to a distance of 256. With 16-bit types, weights and rotated q and k
/// are rounded to the input type. Error relative to the norm of the result: 4e-3; f32: 4e-6. Temporary memory is allocated
/// on the stream: 8 bytes; the table for each head and distance; rotated q and k (or k, and 4 bytes per token and feature);
/// lengths and masks copied from the host; for few queries over many keys, partial sums and the block table. With the
/// backend forced to cuda, tensors on the host (except f64) are copied to the GPU a few heads at a time.
void attention(TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
               const AttentionOptions& options = {}, const Run& run = {});

/// The inputs of attention and, optionally, its outputs, which are recomputed if absent.
struct AttentionInputs {
  ConstTensorView q, k, v;
  ConstTensorView out = {}, logsumexp = {};
};

/// Attention prepared for many calls with the same options and shapes, such as the steps of a decoder. Host only.
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

/// Makes a plan for tensors of these shapes and types; their data is not read. The plan copies the options but not the
/// spans and tensors they refer to, which are read at each call: a decoder updates key_lengths, block_table and ids in
/// place.
/// Throws: as attention, for everything that can be checked at this point, and for packed queries over a paged cache.
AttentionPlan plan_attention(const AttentionInputs& like, const AttentionOptions& options = {});

/// The size in bytes that Run::workspace must have for a call of the plan on `threads` threads (0: as many as threads()
/// returns), for any lengths of which none has fewer keys than queries; with such a sequence, the call allocates.
std::size_t workspace_bytes(const AttentionPlan& plan, int threads = 0);

/// attention with the options of a plan. With a workspace, the cpu backend allocates nothing in f32, f16 and bf16 without
/// `weights` (without Run::pool, the library's own threads may allocate when they start).
///
///   const AttentionPlan step = plan_attention({q, k_cache, v_cache}, options);   // once
///   std::vector<std::byte> workspace(workspace_bytes(step, 4));
///   attention(step, out, q, k_cache, v_cache, {.threads = 4, .workspace = workspace});
///
/// Calls with different workspaces may run concurrently.
/// Throws: as attention; also for shapes or types that differ from the plan's, a workspace that is too small, and a plan that
/// was moved from.
void attention(const AttentionPlan& plan, TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
               const Run& run = {});

/// The size in bytes that Run::workspace must have for such a call on a GPU. The call is only planned: nothing runs on the
/// GPU, and only lengths and tables in host memory are read. Given a workspace in GPU memory, aligned to 256 bytes, a call
/// allocates nothing, so calls on one stream can share it; a call that needs more throws. Assumes that out and the
/// gradients are aligned as q is.
std::size_t workspace_bytes(const AttentionInputs& inputs, const AttentionOptions& options = {});

/// Where the gradients go; those without data are not computed. Gradients of q, k and v are written, in the type of
/// their tensor or in f32, with zeros past the lengths; they may be slices of one tensor, as [tokens, heads of q, k and v,
/// features]. Gradients of the position's parameters and of the sinks are added to what is there, because layers may share
/// learned parameters.
struct AttentionGradients {
  TensorView q = {}, k = {}, v = {};
  TensorView parameters = {};        ///< of the bias, as for bias_backward: [heads], [rows, heads] or [n]
  TensorView query_vectors = {};     ///< of DistanceVectors::for_queries or CountedGates::table, in its shape
  TensorView key_vectors = {};       ///< of DistanceVectors::for_keys
  TensorView value_vectors = {};     ///< of DistanceVectors::for_values
  TensorView query_offsets = {};     ///< [heads, features]
  TensorView sinks = {};             ///< [heads]
  TensorView position_queries = {};  ///< written, in the shape of the option
  TensorView log_gates = {};         ///< written, in the shape of the option
};

/// A query tensor and its gradient, of the same shape.
struct QueryGradient {
  ConstTensorView q, d_q;
};

/// The gradients of attention, given the gradient d_out of its output, which has out's shape and type. Scores are
/// recomputed, not stored: memory is O(queries + keys).
/// Range: q, k, v and d_out must be finite, even where they are masked, except past the lengths.
/// Throws: as attention, and for a gradient that the position does not have.
/// On a GPU: whatever attention supports there in f16 and bf16, with gradients of slopes and tables. Gradients of q, k and v
/// are within 8e-3 of the exact ones, those of parameters within 2e-2, relative to their norms. On compute capability 9.0,
/// the gradient of q is summed in the order in which blocks finish, so its last bits vary from run to run unless
/// is_repeatable is set; gradients of parameters are always reproducible. Temporary memory on the stream: 4 bytes for each
/// element of q, 8 bytes for each row, what attention allocates, and out or logsumexp if absent.
void attention_backward(const AttentionGradients& gradients, ConstTensorView d_out, const AttentionInputs& inputs,
                        const AttentionOptions& options = {}, const Run& run = {});
/// The size in bytes that Run::workspace must have for attention_backward on a GPU, as above.
std::size_t workspace_bytes(const AttentionGradients& gradients, ConstTensorView d_out, const AttentionInputs& inputs,
                            const AttentionOptions& options = {});

/// The gradient of a temperature's scale, or of one scale per head, computed from the gradient of q that
/// attention_backward writes. d_scales is [1] or [heads], f32 or f64, and is added to; q and d_q are [batch, heads,
/// queries, features] on the host. Sums are computed in double, in the order of batch, heads and queries.
/// Throws: Error for a shape, type or position that does not fit, and for a factor of 0, which leaves no trace in d_q.
void temperature_backward(TensorView d_scales, const QueryGradient& query, const Positions& positions,
                          const Temperature& temperature);

}  // namespace posenc
