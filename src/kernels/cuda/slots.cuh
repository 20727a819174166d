#pragma once

// The slots of tokens in a cache. Slots in GPU memory are checked here, so that none writes outside the cache.

#include "kernels/cuda/fault.cuh"

namespace posenc::kernels::cuda {

/// As given. A caller with loads to issue before it is needed does not wait for it here.
__device__ __forceinline__ std::int64_t given_slot(const SlotParams& slots, std::int64_t token) {
  return slots.narrow_ids != nullptr ? std::int64_t{slots.narrow_ids[token]} : slots.ids[token];
}
/// Whether the cache has the slot. Negative ones skip their token; one past the end is reported.
__device__ __forceinline__ bool is_in_cache(const SlotParams& slots, std::int64_t slot, Fault* fault) {
  if (static_cast<std::uint64_t>(slot) < static_cast<std::uint64_t>(slots.limit)) [[likely]]
    return true;
  if (slot >= 0) report(fault, Fault::kSlot, slot, slots.limit);
  return false;
}
/// Whether a token with this slot is written.
__device__ __forceinline__ bool is_written(const RotateParams& p, std::int64_t token, std::int64_t slot) {
  if (!is_in_cache(p.slots, slot, p.fault)) return false;
  const bool has_others = p.others.ids != nullptr || p.others.narrow_ids != nullptr;
  return !has_others || is_in_cache(p.others, given_slot(p.others, token), p.fault);
}

}  // namespace posenc::kernels::cuda
