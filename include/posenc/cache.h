#pragma once

#include <cstdint>
#include <span>

#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc {

// A cache of keys and values in pages, as attention reads it with a block_table: [pages, heads, page size, features] in
// any strides (vLLM's memory is swap_axes(view(pool, {pages, page size, heads, features}), 1, 2)). Slot s is token
// s mod page size of page s / page size. A plain cache of n tokens is one page of n. On the host, but for
// shift.

/// Keys, rotated by their positions, each written to its slot: rotated once, when they come. k is [batch, heads,
/// sequence, features], [heads, sequence, features] or [sequence, features]; slots is [batch, sequence], and a negative
/// slot skips its token. cache and k may differ in type. Takes for_keys(form), as attention does.
/// Error, Range: as rotate. Throws: Error for a shape, type, slot, position or form that does not fit, and for two
/// tokens in one slot; the cache is not touched then.
void rotate_into(TensorView cache, std::span<const std::int64_t> slots, ConstTensorView k, const Positions& positions,
                 const Rotation& form);
/// The same without a rotation: values, and keys that are not rotated.
void copy_into(TensorView cache, std::span<const std::int64_t> slots, ConstTensorView x);

/// Moves rotated keys to other positions: what `form` wrote for a key at position p becomes what it writes for p + by,
/// for all keys of the tensor and all axes of the position, with every scaling, magnitude, growth and layout. x is
/// [batch, heads, sequence, features] or less of it from the left, in any strides, in place.
/// Error: as rotate: one rotation by a constant, in f32 (f64 for f64), and one more rounding to x's type.
/// Range: |by| < 2^53. Throws: Error for float32 angles, which no constant rotation shifts (rerotate does), for a table,
/// and as rotate. On a GPU too: the same bytes.
void shift(TensorView x, std::int64_t by, const Rotation& form, const Run& run = {});

}  // namespace posenc
