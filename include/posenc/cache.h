#pragma once

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
// here works on the host; shift of a whole tensor also works on a GPU.

/// The slots of tokens first, …, first + count − 1 of a sequence; `pages` is the sequence's row of the block table.
/// Throws: Error for a negative first or count, a page size below 1, and tokens past the last page or in a negative page.
std::vector<std::int64_t> slots_of(std::span<const std::int32_t> pages, std::int64_t page_size, std::int64_t first,
                                   std::int64_t count);

/// Rotates new keys by their positions and writes each to its slot in the cache, so that a key is rotated only once. k is
/// [batch, heads, sequence, features], [heads, sequence, features] or [sequence, features]; slots is [batch, sequence],
/// and tokens with a negative slot are skipped. cache and k may have different types. Applies for_keys(form), as
/// attention does.
/// Error, Range: as rotate.
/// Throws: Error for a shape, type, slot, position or form that does not fit, and for two tokens with the same slot; the
///   cache is then left unchanged.
void rotate_into(TensorView cache, std::span<const std::int64_t> slots, ConstTensorView k, const Positions& positions,
                 const Rotation& form, const Run& run = {});
/// The same without a rotation: for values, and for keys that are not rotated.
void copy_into(TensorView cache, std::span<const std::int64_t> slots, ConstTensorView x, const Run& run = {});

/// Copies the token in slot from[i] to slot to[i] for every i, as if all were read before any is written: to give a forked
/// sequence a page of its own, or to close the gap that dropped tokens leave. A pair with a negative slot is skipped. Keys
/// keep the positions they were rotated for; shift changes those.
/// Throws: Error for lists of different lengths, a slot past the end of the cache, and a slot that occurs twice in `to`;
///   the cache is then left unchanged.
void copy_slots(TensorView cache, std::span<const std::int64_t> to, std::span<const std::int64_t> from,
                const Run& run = {});

/// Moves rotated keys to other positions, in place: a key that `form` rotated for position p becomes the key it would
/// rotate for position p + by. Shifts all keys of the tensor, on all axes of the position, with any scaling, magnitude,
/// growth and layout. x is [batch, heads, sequence, features], [heads, sequence, features] or [sequence, features], in any
/// strides.
/// Error: as rotate: one rotation by a constant in f32 (f64 for f64), plus one rounding to x's type.
/// Range: |by| < 2^53.
/// Throws: as rotate; also for float32 angles, which do not shift by a constant (use rerotate), and for a table.
/// On a GPU: the same bytes.
void shift(TensorView x, std::int64_t by, const Rotation& form, const Run& run = {});
/// The same for the keys in the given slots of a cache, such as those of one sequence; negative slots are skipped. Host
/// only.
/// Throws: as above; also for a slot past the end of the cache, and for a slot that occurs twice.
void shift(TensorView cache, std::span<const std::int64_t> slots, std::int64_t by, const Rotation& form,
           const Run& run = {});

}  // namespace posenc
