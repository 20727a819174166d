#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc {

// A cache of keys and values in pages, as attention reads it with a block_table: [pages, heads, page size, features] in
// any strides (vLLM's memory is swap_axes(view(pool, {pages, page size, heads, features}), 1, 2)). Slot s is token
// s mod page size of page s / page size. A plain cache of n tokens is one page of n. On the host, but for
// shift.

/// The slots of tokens first … first + count − 1 of a sequence with these pages: its row of a block table.
/// Throws: Error for a negative first or count, a page size below 1, and tokens past the pages or in a negative page.
std::vector<std::int64_t> slots_of(std::span<const std::int32_t> pages, std::int64_t page_size, std::int64_t first,
                                   std::int64_t count);

/// Keys, rotated by their positions, each written to its slot: rotated once, when they come. k is [batch, heads,
/// sequence, features], [heads, sequence, features] or [sequence, features]; slots is [batch, sequence], and a negative
/// slot skips its token. cache and k may differ in type. Takes for_keys(form), as attention does.
/// Error, Range: as rotate. Throws: Error for a shape, type, slot, position or form that does not fit, and for two
/// tokens in one slot; the cache is not touched then.
void rotate_into(TensorView cache, std::span<const std::int64_t> slots, ConstTensorView k, const Positions& positions,
                 const Rotation& form, const Run& run = {});
/// The same without a rotation: values, and keys that are not rotated.
void copy_into(TensorView cache, std::span<const std::int64_t> slots, ConstTensorView x, const Run& run = {});

/// Copies the token of slot from[i] to slot to[i], for every i, as if all were read before any is written: a fork that gets
/// a page of its own, tokens that close a gap. Where either is negative, that one is skipped. The positions of keys stay
/// what they were: shift changes them.
/// Throws: Error for lists of different lengths, a slot past the cache, and two tokens in one slot; the cache is not
/// touched then.
void copy_slots(TensorView cache, std::span<const std::int64_t> to, std::span<const std::int64_t> from,
                const Run& run = {});

/// Moves rotated keys to other positions: what `form` wrote for a key at position p becomes what it writes for p + by,
/// for all keys of the tensor and all axes of the position, with every scaling, magnitude, growth and layout. x is
/// [batch, heads, sequence, features] or less of it from the left, in any strides, in place.
/// Error: as rotate: one rotation by a constant, in f32 (f64 for f64), and one more rounding to x's type.
/// Range: |by| < 2^53. Throws: Error for float32 angles, which no constant rotation shifts (rerotate does), for a table,
/// and as rotate. On a GPU too: the same bytes.
void shift(TensorView x, std::int64_t by, const Rotation& form, const Run& run = {});
/// The same for the keys in these slots of a cache, such as those of one sequence; a negative slot is skipped. On the host.
/// Throws: as above, for a slot past the cache, and for one that is given twice.
void shift(TensorView cache, std::span<const std::int64_t> slots, std::int64_t by, const Rotation& form,
           const Run& run = {});

}  // namespace posenc
