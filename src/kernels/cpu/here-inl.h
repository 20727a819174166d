// Keeps operations in the order in which they are written.

#if defined(POSENC_HERE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_HERE_INL_H
#undef POSENC_HERE_INL_H
#else
#define POSENC_HERE_INL_H
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The value is computed before any later value marked the same way. Compilers group operations by kind, all products,
// then all sums; a processor that cannot look far enough ahead to mix them again then stalls for much of its time
// (docs/decisions/0014).
template <class V> HWY_INLINE V here(V v) {
#if HWY_TARGET == HWY_NEON
  asm volatile("" : : "w"(v.raw));
#endif
  return v;
}

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
