#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc {

// A paged cache of keys and values, as attention reads it through a block_table: [pages, heads, page size, features] in
// any strides (for vLLM's memory layout, swap_axes(view(pool, {pages, page size, heads, features}), 1, 2)). Slot s is
// token s mod page size of page s / page size. A contiguous cache of n tokens is a single page of n tokens. Everything
// here works on the host and on a GPU, with bit-identical results; all tensors of a call are on one device.

/// A vector, span or array of them.
template <class List, class Slot>
concept ListOf = std::convertible_to<const List&, std::span<const Slot>>;

/// The slots of tokens, [batch, sequence], in 64 or 32 bits. Tokens with a negative slot are skipped.
///
///   slots                                            a vector or span on the host
///   {std::span(slots, tokens), Device::kCuda}        in GPU memory, such as vLLM's slot_mapping
///
/// Slots on the host are checked before anything is written. Slots on a GPU are checked there: the token of a slot past the
/// end of the cache is skipped, and the next synchronize throws an Error. There a slot that occurs twice is not detected: it
/// gets one of its tokens, or features of several. They remain the caller's, must outlive the work that the call enqueues, and
/// require tensors on a GPU.
struct Slots {
  std::span<const std::int64_t> ids = {};
  std::span<const std::int32_t> ids_i32 = {};  ///< instead of ids
  Device device = Device::kHost;               ///< where they are

  Slots() = default;
  template <ListOf<std::int64_t> List> Slots(const List& list, Device where = Device::kHost)
      : ids(list), device(where) {}
  template <ListOf<std::int32_t> List> Slots(const List& list, Device where = Device::kHost)
      : ids_i32(list), device(where) {}
};

/// The slots of tokens first, …, first + count − 1 of a sequence; `pages` is the sequence's row of the block table.
/// Throws: Error for a negative first or count, a page size below 1, and tokens past the last page or in a negative page.
std::vector<std::int64_t> slots_of(std::span<const std::int32_t> pages, std::int64_t page_size, std::int64_t first,
                                   std::int64_t count);

/// A cache to write to: of any type of numbers, e4m3 or q8_0, whose blocks have their scales inside. One of e4m3 has a scale, which attention multiplies its elements by (k_scale, v_scale): f32 on the
/// host, one number or one for each head; without data: 1.
struct CacheView {
  TensorView tensor;
  ConstTensorView scale;

  CacheView() = default;
  CacheView(const TensorView& pool, const ConstTensorView& scale_of_it = {}) : tensor(pool), scale(scale_of_it) {}
};

/// Rotates new keys by their positions and writes each to its slot in the cache, so that a key is rotated only once. k is
/// [batch, heads, sequence, features], [heads, sequence, features] or [sequence, features]; slots is [batch, sequence].
/// cache and k may have different types. Applies for_keys(form), as attention does.
/// Error, Range: as rotate; positions must not be negative. e4m3: rotated in f32 (f64 for f64), divided by the scale there,
///   and then rounded to nearest, ties to even: within 2^-4 of the element, or scale · 2^-10 if that is more, up to 448 ·
///   scale, beyond which elements become that. q8_0: rotated in f32 (f64 for f64, and then rounded to f32), with the bytes of
///   ggml's quantize_row_q8_0_ref, on the host: within m / 225 + 2^-18 of the element, where m is the largest size in its block,
///   up to 8.3e6. Larger blocks are infinite; one with an element that is not finite is NaN.
/// Throws: Error for a shape, type, slot, position or form that is invalid, and for two tokens with the same slot; the
///   cache is then left unchanged.
void rotate_into(const CacheView& cache, const Slots& slots, ConstTensorView k, const Positions& positions,
                 const Rotation& form, const Run& run = {});
/// The same without a rotation: for values, and for keys that are not rotated.
void copy_into(const CacheView& cache, const Slots& slots, ConstTensorView x, const Run& run = {});

/// The caches of keys and of values. Their features, types and strides may differ.
struct KeyValueCache {
  CacheView k, v;
};

/// What a step of a decoder computes for its new tokens, each [batch, heads, sequence, features], [heads, sequence, features]
/// or [sequence, features] in any strides; the slices of one product, for example.
struct NewTokens {
  ConstTensorView q = {};  ///< without data: only keys and values are written
  ConstTensorView k = {}, v = {};
  TensorView q_out = {};  ///< receives the queries; may be q itself
  /// Trained weights of an RMS norm, which is applied before the rotation: x / √(mean(x²) + epsilon) · (weight + offset).
  /// [features]: over each head (Qwen 3, Gemma 3); [heads, features]: over all heads of a token (OLMo 2). Without data: no
  /// norm.
  ConstTensorView q_norm = {}, k_norm = {};
  double norm_epsilon = 1e-6;
  double norm_offset = 0.0;  ///< 1 for Gemma, which stores weight − 1
};

/// A step of a decoder: writes rotated q to q_out, and rotated k and unchanged v to their slots. On a GPU it is a single
/// kernel, except for f64 together with another type. q and k are rotated as rotate and rotate_into do.
/// Error: without a norm as rotate, bit-identical. A norm is computed in f32 (f64 for f64) and not rounded in between;
///   on the host its sums are in double. Its factor is within 1e-6 (2e-15) for up to 256 features, and the result differs
///   between host and GPU by at most one rounding to its type.
/// Throws: as rotate_into, and for an epsilon that is negative or not finite; everything is then left unchanged.
void append(const KeyValueCache& cache, const Slots& slots, const NewTokens& tokens, const Positions& positions,
            const Rotation& form, const Run& run = {});
/// The same without a rotation.
void append(const KeyValueCache& cache, const Slots& slots, const NewTokens& tokens, const Run& run = {});

/// Copies the token in slot from[i] to slot to[i] for every i, as if all were read before any is written: to give a forked
/// sequence a page of its own, or to close the gap that dropped tokens leave. A pair with a negative slot is skipped. Keys
/// keep the positions they were rotated for; shift changes those. On a GPU it borrows memory for the tokens.
/// Throws: Error for lists of different lengths or on two devices, a slot past the end of the cache, and a slot that occurs
///   twice in `to`; the cache is then left unchanged.
void copy_slots(TensorView cache, const Slots& to, const Slots& from, const Run& run = {});

/// Moves rotated keys to other positions, in place: a key that `form` rotated for position p becomes the key it would
/// rotate for position p + by. Shifts all keys of the tensor, on all axes of the position, with any scaling, magnitude,
/// growth and layout. x is [batch, heads, sequence, features], [heads, sequence, features] or [sequence, features], in any
/// strides.
/// Error: as rotate: one rotation by a constant in f32 (f64 for f64), plus one rounding to x's type. Those of repeated shifts
///   add up: f16 and bf16 must be shifted by 64 or more at once, or they would decay (docs/guide/engines.md).
/// Range: |by| < 2^53.
/// Throws: as rotate; also for float32 angles, which do not shift by a constant (use rerotate), for a table, and for a cache of
///   e4m3 or q8_0, which each shift would round to 8 bits again.
/// On a GPU: bit-identical.
void shift(TensorView x, std::int64_t by, const Rotation& form, const Run& run = {});
/// The same for the keys in the given slots of a cache, such as those of one sequence.
/// Throws: as above; also for a slot past the end of the cache, and for a slot that occurs twice.
void shift(TensorView cache, const Slots& slots, std::int64_t by, const Rotation& form, const Run& run = {});

}  // namespace posenc
