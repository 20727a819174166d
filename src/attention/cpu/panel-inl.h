// The register-tiled product behind Q Kᵀ and P V, for code that is compiled once per SIMD target. A panel is a matrix
// whose rows are kPanelVectors vectors wide; its columns are queries, so that the online softmax of a query stays in
// one lane and needs no reduction across lanes.

#if defined(POSENC_PANEL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_PANEL_INL_H
#undef POSENC_PANEL_INL_H
#else
#define POSENC_PANEL_INL_H
#endif

#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "terms/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using terms::HWY_NAMESPACE::DF;
using terms::HWY_NAMESPACE::kMostLanes;
using terms::HWY_NAMESPACE::kMostWidth;
using terms::HWY_NAMESPACE::kPanelVectors;
using terms::HWY_NAMESPACE::lanes;
using terms::HWY_NAMESPACE::load;
using terms::HWY_NAMESPACE::store;
using terms::HWY_NAMESPACE::VF;
HWY_INLINE std::int64_t panel_width() { return kPanelVectors * lanes(); }

constexpr float kNone = -std::numeric_limits<float>::infinity();

// How many rows of the product are computed at once: all their sums stay in registers, of which there are 32 or 16.
constexpr std::int64_t kGroup = 8;
#undef POSENC_FEW_REGISTERS
#define POSENC_FEW_REGISTERS (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3)

#undef POSENC_BY_LANE
#if HWY_TARGET == HWY_NEON
#define POSENC_BY_LANE 1  // a factor is a lane of a register: two loads fetch eight factors
#else
#define POSENC_BY_LANE 0
#endif

// out[m, :] = (kAdd ? out[m, :] : 0) + Σ_k a[k · a_stride + m] · b[k, :]   for m < 8; out and b are panels
// The previous content of out is added last: each tile is summed on its own before the tiles are, which keeps
// rounding errors small.
#define POSENC_START(m) VF s##m##0 = hn::Zero(d), s##m##1 = s##m##0, s##m##2 = s##m##0
#define POSENC_STEP(m, factor)             \
  {                                        \
    const VF by = factor;                  \
    s##m##0 = hn::MulAdd(b0, by, s##m##0); \
    s##m##1 = hn::MulAdd(b1, by, s##m##1); \
    s##m##2 = hn::MulAdd(b2, by, s##m##2); \
  }
#define POSENC_END(m)                         \
  finish<kAdd>(s##m##0, out + (m)*width);     \
  finish<kAdd>(s##m##1, out + (m)*width + n); \
  finish<kAdd>(s##m##2, out + (m)*width + 2 * n)
template <bool kAdd> HWY_INLINE void finish(VF sum, float* HWY_RESTRICT out) {
  hn::StoreU(kAdd ? hn::Add(hn::LoadU(DF(), out), sum) : sum, DF(), out);
}

#if POSENC_FEW_REGISTERS
template <bool kAdd> HWY_INLINE void multiply_half(const float* HWY_RESTRICT a, std::int64_t a_stride,
                                                   const float* HWY_RESTRICT b, std::int64_t depth,
                                                   float* HWY_RESTRICT out) {
  const DF d;
  const std::int64_t n = lanes(), width = panel_width();
  POSENC_START(0);
  POSENC_START(1);
  POSENC_START(2);
  POSENC_START(3);
  for (std::int64_t k = 0; k < depth; ++k, a += a_stride, b += width) {
    const VF b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + n), b2 = hn::LoadU(d, b + 2 * n);
    POSENC_STEP(0, hn::Set(d, a[0]));
    POSENC_STEP(1, hn::Set(d, a[1]));
    POSENC_STEP(2, hn::Set(d, a[2]));
    POSENC_STEP(3, hn::Set(d, a[3]));
  }
  POSENC_END(0);
  POSENC_END(1);
  POSENC_END(2);
  POSENC_END(3);
}
#endif

template <bool kAdd> HWY_NOINLINE void multiply(const float* HWY_RESTRICT a, std::int64_t a_stride,
                                                const float* HWY_RESTRICT b, std::int64_t depth,
                                                float* HWY_RESTRICT out) {
#if POSENC_FEW_REGISTERS
  multiply_half<kAdd>(a, a_stride, b, depth, out);
  multiply_half<kAdd>(a + kGroup / 2, a_stride, b, depth, out + kGroup / 2 * panel_width());
#else
  const DF d;
  const std::int64_t n = lanes(), width = panel_width();
  POSENC_START(0);
  POSENC_START(1);
  POSENC_START(2);
  POSENC_START(3);
  POSENC_START(4);
  POSENC_START(5);
  POSENC_START(6);
  POSENC_START(7);
  for (std::int64_t k = 0; k < depth; ++k, a += a_stride, b += width) {
    const VF b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + n), b2 = hn::LoadU(d, b + 2 * n);
#if POSENC_BY_LANE
    const VF low = hn::LoadU(d, a), high = hn::LoadU(d, a + 4);
    POSENC_STEP(0, hn::Broadcast<0>(low));
    POSENC_STEP(1, hn::Broadcast<1>(low));
    POSENC_STEP(2, hn::Broadcast<2>(low));
    POSENC_STEP(3, hn::Broadcast<3>(low));
    POSENC_STEP(4, hn::Broadcast<0>(high));
    POSENC_STEP(5, hn::Broadcast<1>(high));
    POSENC_STEP(6, hn::Broadcast<2>(high));
    POSENC_STEP(7, hn::Broadcast<3>(high));
#else
    POSENC_STEP(0, hn::Set(d, a[0]));
    POSENC_STEP(1, hn::Set(d, a[1]));
    POSENC_STEP(2, hn::Set(d, a[2]));
    POSENC_STEP(3, hn::Set(d, a[3]));
    POSENC_STEP(4, hn::Set(d, a[4]));
    POSENC_STEP(5, hn::Set(d, a[5]));
    POSENC_STEP(6, hn::Set(d, a[6]));
    POSENC_STEP(7, hn::Set(d, a[7]));
#endif
  }
  POSENC_END(0);
  POSENC_END(1);
  POSENC_END(2);
  POSENC_END(3);
  POSENC_END(4);
  POSENC_END(5);
  POSENC_END(6);
  POSENC_END(7);
#endif
}
#undef POSENC_START
#undef POSENC_STEP
#undef POSENC_END

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
