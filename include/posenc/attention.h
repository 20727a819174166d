#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc {

/// The options of attention; every field has a default, and `fields` lists them with their help. Shapes, types and how
/// they combine are in docs/guide/attention.md.
///
/// Query i and key j are indices into their tensors. The queries are the last tokens of the sequence: query i is the
/// same token as key i + keys − queries, so one query with a cache of keys is a decoding step. With lengths or packed
/// sequences, this holds within each sequence.
///
/// score = softcap(scale · temperature · q·k) + bias + mask, followed by the softmax over the keys and the sink. Terms
/// from vectors by distance (DistanceVectors) are added before the softcap.
struct AttentionOptions {
  Form position = {};  ///< Nothing, a Rotation or a Bias; an Addition belongs to the embeddings: use add()
  std::optional<Axes> axes = {};
  bool causal = false;
  std::int64_t window = 0, chunk = 0;
  std::optional<double> scale = {};  ///< the form's softmax_factor multiplies it, set or not
  double softcap = 0;
  std::optional<Temperature> temperature = {};  ///< with any form except one that is a temperature itself
  ConstTensorView sinks = {}, mask = {}, position_queries = {}, log_gates = {};

  std::optional<Positions> query_positions = {}, key_positions = {};
  bool keys_are_rotated = false, rounds_rotated = false;

  std::span<const std::int64_t> query_lengths = {}, key_lengths = {}, packed = {}, packed_keys = {}, key_mask = {},
                                spans = {};
  std::span<const std::int32_t> block_table = {}, device_key_lengths = {}, device_block_table = {};

  bool is_repeatable = false;
  TensorView weights = {}, logsumexp = {};  ///< further outputs, written if they have data
  ConstTensorView k_scale = {}, v_scale = {};

  /// Every option once: visit(name, member, help). C, Python and the engines (option_set.h) follow this list, and
  /// posenc_attention_options has its order, so a new option comes last.
  template <class Visitor> static constexpr void fields(Visitor&& visit) {
    using Self = AttentionOptions;
    visit("position", &Self::position,
          "a rotation (q and k are rotated as they are loaded) or a bias (added to scores)");
    visit("causal", &Self::causal, "a query attends to no key after its own token");
    visit("keys_are_rotated", &Self::keys_are_rotated,
          "k was rotated before (a cache of rotated keys), so only q is");
    visit("window", &Self::window, "n: a query attends only to keys less than n positions away; 0: no limit");
    visit("scale", &Self::scale, "multiplies q·k; unset: 1/√features (T5 needs 1)");
    visit("query_positions", &Self::query_positions,
          "unset: 0, 1, 2 … in each sequence, with the queries at its end");
    visit("key_positions", &Self::key_positions, "unset: 0, 1, 2 … in each sequence");
    visit("query_lengths", &Self::query_lengths, "[batch]: of shorter sequences; queries past the end give zeros");
    visit("key_lengths", &Self::key_lengths, "[batch]: of shorter sequences; keys past the end are not read");
    visit("packed", &Self::packed, "the lengths of sequences packed one after another, which do not see each other");
    visit("packed_keys", &Self::packed_keys, "the same for keys; unset: as packed");
    visit("key_mask", &Self::key_mask, "[batch, keys]: 0 marks padding, which no query attends to");
    visit("weights", &Self::weights, "written: [batch, heads, queries, keys] in out's type, for small inputs");
    visit("logsumexp", &Self::logsumexp, "written: [batch, heads, queries], f32 or f64: log of the sum of e^score");
    visit("chunk", &Self::chunk,
          "n: a query attends only to keys in its own chunk of n positions (Llama 4); 0: no chunks");
    visit("softcap", &Self::softcap, "c: scaled scores become c · tanh(score / c) (Gemma 2); 0: no cap");
    visit("temperature", &Self::temperature, "multiplies each query by a factor that depends on its position");
    visit("sinks", &Self::sinks, "[heads]: logits that take part in every softmax and have no value (gpt-oss)");
    visit("mask", &Self::mask, "broadcast to [batch, heads, queries, keys]: bool, or numbers added to the scores");
    visit("repeatable", &Self::is_repeatable,
          "bitwise reproducible gradients on a GPU, slower; on the host always so");
    visit("position_queries", &Self::position_queries,
          "as q: dotted with a form's vectors in q's place (relative-logits)");
    visit("log_gates", &Self::log_gates,
          "[batch, heads, keys]: logarithms of gates whose sums a form adds (forget-gate)");
    visit("rounds_rotated", &Self::rounds_rotated,
          "f16 and bf16: round rotated q and k to their type; a GPU always does");
    visit("block_table", &Self::block_table,
          "[sequences, pages of each]: k and v are pools of pages; needs key_lengths");
    visit("axes", &Self::axes,
          "the order of the axes of out, q, k, v and their gradients; unset: heads before sequence");
    visit("device_key_lengths", &Self::device_key_lengths, "key_lengths in GPU memory, read when the kernels run");
    visit("device_block_table", &Self::device_block_table, "block_table in GPU memory, read when the kernels run");
    visit("spans", &Self::spans,
          "[batch, keys]: equal neighbours other than 0 are a span, whose tokens all attend to each other (images)");
    visit("k_scale", &Self::k_scale, "multiplies keys of e4m3: f32, [1] or [key heads]");
    visit("v_scale", &Self::v_scale, "multiplies values of e4m3: f32, [1] or [key heads]");
  }
};

/// out = softmax(scale · q·kᵀ + bias) · v over the keys that each query may attend to.
///
///   q    [batch, heads, queries, features]        k    [batch, key heads, keys, features]
///   out  [batch, heads, queries, value features]  v    [batch, key heads, keys, value features]
///
/// in any strides. The batch axis, or the batch and head axes, may be absent; options.axes allows other axis orders.
///
/// - Heads: `heads` is a multiple of `key heads`, and query head h reads key head h / (heads / key heads) (GQA, MQA).
/// - Types: k and v have the same type; q has that type too, or is f32 with an f16 or bf16 cache, or any of these three with
///   a cache of e4m3 or q8_0; out has q's type. Sums are f32 for f32, f16 and bf16, and f64 for f64. Keys of e4m3 and q8_0 are
///   rotated already, and go with any position but one that reads q or k itself (DistanceVectors, CountedGates).
/// - A query with no visible key gives zeros; docs/guide/attention.md has infinities, NaN and memory.
///
/// Error: f32: at most 2e-6 · Σ weight · |v| while |scale · q·k| and the bias stay below 16. f16 and bf16: another half
///   ulp of the result, and, if the processor multiplies bf16 in hardware and the result is not f32, the error of
///   representing a number as the sum of two bf16: for few queries over a bf16 cache (arm64's BFDOT) 2^-17 · Σ weight · |v|;
///   for more queries, or many heads of a key head (BFMMLA, x86-64's AMX), 2^-15 · Σ weight · |v|, and with q or k in f16,
///   or rotated here without rounds_rotated, another 2^-14 · scale · |q| · |k| of that sum. Sums of gates add 2^-46 of the
///   largest sum to the error of a score (2^-51 for f64), contextual positions 2^-22 · keys · the largest step between rows.
/// Range: as rotate and bias for the form.
/// Throws: Error for a shape, type, length, position or form that is invalid; out is then left unchanged.
/// On a GPU: docs/guide/gpu.md has what there is a kernel for, its errors and its memory. Anything else is an Error.
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
/// With packed queries over a paged cache, a call may have fewer tokens than the plan: the options then count for the first
/// ones. `packed` is read at each call too, 0 for a sequence without queries; its numbers do not matter here.
/// Throws: as attention, for everything that can be checked at this point.
AttentionPlan plan_attention(const AttentionInputs& like, const AttentionOptions& options = {});

/// The size in bytes that Run::workspace must have for a call of the plan on `threads` threads (0: as many as threads()
/// returns), for any lengths of which none has fewer keys than queries; with such a sequence, the call allocates.
std::size_t workspace_bytes(const AttentionPlan& plan, int threads = 0);

/// attention with the options of a plan. With a workspace, the cpu backend allocates nothing in f32, f16 and bf16 without
/// `weights` (without Run::pool, the library's own threads may allocate when they start).
/// Throws: as attention; also for shapes or types that differ from the plan's (but for fewer packed tokens), a workspace that is too small, and a plan that
/// was moved from.
void attention(const AttentionPlan& plan, TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
               const Run& run = {});

/// The size in bytes that Run::workspace must have for such a call on a GPU. The call is only planned: nothing runs on the
/// GPU, and only lengths and tables in host memory are read. Given a workspace in GPU memory, aligned to 256 bytes, a call
/// allocates nothing, so calls on one stream can share it; a call that needs more throws. Assumes that out and the
/// gradients are aligned as q is.
std::size_t workspace_bytes(const AttentionInputs& inputs, const AttentionOptions& options = {});

/// Merges attention over other keys into out: two partial results over disjoint keys become the result over all of them.
///
///   out        [batch, heads, queries, features]   other            the same shape
///   logsumexp  [batch, heads, queries]             other_logsumexp  the same shape
///
/// as attention writes them (options.logsumexp), in any strides; the batch axis, or the batch and head axes, may be absent.
/// With w = 1 / (1 + e^(other_logsumexp − logsumexp)), out becomes w · out + (1 − w) · other, and logsumexp becomes
/// log(e^logsumexp + e^other_logsumexp).
///
/// - Types: out and other are f32, f64, f16 or bf16, and each logsumexp is f32 or f64, independently of each other.
/// - A logsumexp of −inf means that the query has no key on that side, which is then not read; NaN and +inf make the row
///   NaN. docs/guide/scaling.md has the rest, and what to merge.
///
/// Error: half an ulp of out, plus 2^-50 · max(|out|, |other|); half an ulp of logsumexp, plus 2^-51 · max(1, |logsumexp|). If
///   each logsumexp is off by up to ε, ε · max(|out|, |other|) more.
/// Throws: Error for a shape or type that is invalid, for an output that overlaps another argument, and for tensors on a
///   GPU; out and logsumexp are then left unchanged.
void merge(TensorView out, TensorView logsumexp, ConstTensorView other, ConstTensorView other_logsumexp,
           const Run& run = {});

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
/// Throws: as attention, for a gradient that the position does not have, and for a logsumexp of other keys as well if that is
///   not supported (docs/guide/scaling.md); gradients of q, k and v may then have been written.
/// On a GPU: f16 and bf16, with gradients of slopes and tables; see docs/guide/gpu.md.
void attention_backward(const AttentionGradients& gradients, ConstTensorView d_out, const AttentionInputs& inputs,
                        const AttentionOptions& options = {}, const Run& run = {});
/// The size in bytes that Run::workspace must have for attention_backward on a GPU, as above.
std::size_t workspace_bytes(const AttentionGradients& gradients, ConstTensorView d_out, const AttentionInputs& inputs,
                            const AttentionOptions& options = {});

/// The gradient of a temperature's scale, or of one scale per head, computed from the gradient of q that
/// attention_backward writes. d_scales is [1] or [heads], f32 or f64, and is added to; q and d_q are [batch, heads,
/// queries, features] on the host. Sums are computed in double, in the order of batch, heads and queries.
/// Throws: Error for a shape, type or position that is invalid, and for a factor of 0, which leaves no trace in d_q.
void temperature_backward(TensorView d_scales, const QueryGradient& query, const Positions& positions,
                          const Temperature& temperature);

}  // namespace posenc
