// The vectors in which tiles of scores are computed, for code that is compiled once per SIMD target.

#if defined(POSENC_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_LANES_INL_H
#undef POSENC_LANES_INL_H
#else
#define POSENC_LANES_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::terms::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Longer vectors are not used, so that tiles fit in the caches.
using DF = hn::CappedTag<float, 16>;
using VF = hn::Vec<DF>;
constexpr std::int64_t kPanelVectors = 3;  // of a row of a tile
constexpr std::int64_t kMostLanes = 16;
constexpr std::int64_t kMostWidth = kPanelVectors * kMostLanes;

HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(DF())); }
HWY_INLINE VF load(const float* from, std::int64_t vector) { return hn::LoadU(DF(), from + vector * lanes()); }
HWY_INLINE void store(VF value, float* to, std::int64_t vector) { hn::StoreU(value, DF(), to + vector * lanes()); }

}  // namespace posenc::terms::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
