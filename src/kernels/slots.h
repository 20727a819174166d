#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernels/checks.h"
#include "kernels/element.h"
#include "kernels/memory.h"
#include "posenc/cache.h"

namespace posenc::kernels {

// Slots of a cache: their checks, and how the host writes to them. Errors begin with the verb.

/// A cache that is written: [pages, heads, page size, features].
HeadTensor<void> cache_of(std::string_view verb, std::string_view what, const TensorView& cache,
                          Types types = Types::kOfCache);
inline std::int64_t slots_in(const HeadTensor<void>& cache) { return cache.batch * cache.sequence; }
inline std::int64_t slot_count(const Slots& slots) { return std::ssize(slots.ids) + std::ssize(slots.ids_i32); }
/// Checks that a cache has the heads and features of the tokens, and each token a slot.
void check_fits(std::string_view verb, const HeadTensor<void>& cache, const HeadTensor<const void>& x,
                std::int64_t slots);

/// The slots of a call, checked: those on the host are in the cache, those on a GPU will be checked there.
class CallSlots {
 public:
  /// `limit` is the number of slots of the cache, or of the smaller of two; `tensors`, where the cache is.
  CallSlots(std::string_view verb, const Slots& slots, std::int64_t limit, Device tensors);
  CallSlots(const CallSlots&) = delete;
  CallSlots& operator=(const CallSlots&) = delete;

  const SlotList& list() const { return list_; }
  /// On the host.
  std::span<const std::int64_t> values() const { return {list_.ids, static_cast<std::size_t>(list_.tokens)}; }

 private:
  std::vector<std::int64_t> wide_;  // of 32-bit ones on the host
  SlotList list_;
};
/// Checks that no slot occurs twice. Those on a GPU are not known.
void check_apart(std::string_view verb, const CallSlots& slots);
void check_apart(std::string_view verb, std::span<const std::int64_t> slots);

/// Tokens of one sequence whose slots are consecutive in one page.
struct SlotRun {
  std::int64_t b, token, page, offset, count;
};
AlignedVector<SlotRun> runs_of(const HeadTensor<void>& cache, std::int64_t sequence,
                               std::span<const std::int64_t> slots);
/// The tokens of a run as a separate view: [heads, tokens, features].
template <class Void>
BasicTensorView<Void> tokens_in(const HeadTensor<Void>& x, std::int64_t b, std::int64_t token, std::int64_t count) {
  Void* const start =
      with_type(x.type, [&](auto kind) -> Void* { return x.template row<decltype(kind)>(b, 0, token); });
  return {start, x.type, {x.heads, count, x.features}, {x.head_stride, x.token_stride, x.feature_stride}};
}

/// Rotates tokens into their slots, or copies them, on the host; for verbs that have checked everything. The form is that
/// of keys.
void rotate_to_slots(std::string_view verb, const HeadTensor<void>& cache, const Scales& scales,
                     std::span<const std::int64_t> slots, const HeadTensor<const void>& k,
                     const TokenPositions& positions, const Rotation& form);
void copy_to_slots(const HeadTensor<void>& cache, const Scales& scales, std::span<const std::int64_t> slots,
                   const HeadTensor<const void>& x);

/// A tensor that is only read.
HeadTensor<const void> read_only(const HeadTensor<void>& x);

}  // namespace posenc::kernels
