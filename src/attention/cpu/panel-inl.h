// The register-tiled product behind Q Kᵀ and P V, for code that is compiled once per SIMD target. A panel is a matrix
// whose rows are kPanelVectors vectors wide; its columns are queries, so that the online softmax of a query stays in
// one lane and needs no reduction across lanes.

#if defined(POSENC_PANEL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_PANEL_INL_H
#undef POSENC_PANEL_INL_H
#else
#define POSENC_PANEL_INL_H
#endif

#include <limits>

#include "attention/cpu/repeat.h"
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

// Rows of a product are computed in groups of eight, all at once or half of them: as many as have their sums in registers,
// of which there are 32 or 16.
constexpr std::int64_t kGroup = 8;
#undef POSENC_FEW_REGISTERS
#define POSENC_FEW_REGISTERS (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3)

#undef POSENC_EACH_ROW
#if POSENC_FEW_REGISTERS
#define POSENC_EACH_ROW POSENC_REPEAT_4
constexpr std::int64_t kRowsAtOnce = 4;
#else
#define POSENC_EACH_ROW POSENC_REPEAT_8
constexpr std::int64_t kRowsAtOnce = 8;
#endif

#if HWY_TARGET == HWY_NEON  // a factor is a lane of a register: two loads fetch eight factors
#define POSENC_LOAD_FACTORS const VF low = hn::LoadU(d, a), high = hn::LoadU(d, a + 4);
#define POSENC_FACTOR(m) hn::Broadcast<(m) % 4>((m) < 4 ? low : high)
#else
#define POSENC_LOAD_FACTORS
#define POSENC_FACTOR(m) hn::Set(d, a[m])
#endif
#define POSENC_ZERO_ROW(m) VF s##m##0 = hn::Zero(d), s##m##1 = s##m##0, s##m##2 = s##m##0;
#define POSENC_MULTIPLY_ROW(m)             \
  {                                        \
    const VF by = POSENC_FACTOR(m);        \
    s##m##0 = hn::MulAdd(b0, by, s##m##0); \
    s##m##1 = hn::MulAdd(b1, by, s##m##1); \
    s##m##2 = hn::MulAdd(b2, by, s##m##2); \
  }
#define POSENC_STORE_ROW(m)                   \
  finish<kAdd>(s##m##0, out + (m)*width);     \
  finish<kAdd>(s##m##1, out + (m)*width + n); \
  finish<kAdd>(s##m##2, out + (m)*width + 2 * n);
template <bool kAdd> HWY_INLINE void finish(VF sum, float* HWY_RESTRICT out) {
  hn::StoreU(kAdd ? hn::Add(hn::LoadU(DF(), out), sum) : sum, DF(), out);
}
template <bool kAdd> HWY_INLINE void multiply_rows(const float* HWY_RESTRICT a, std::int64_t a_stride,
                                                   const float* HWY_RESTRICT b, std::int64_t depth,
                                                   float* HWY_RESTRICT out) {
  const DF d;
  const std::int64_t n = lanes(), width = panel_width();
  POSENC_EACH_ROW(POSENC_ZERO_ROW)
  for (std::int64_t k = 0; k < depth; ++k, a += a_stride, b += width) {
    const VF b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + n), b2 = hn::LoadU(d, b + 2 * n);
    POSENC_LOAD_FACTORS
    POSENC_EACH_ROW(POSENC_MULTIPLY_ROW)
  }
  POSENC_EACH_ROW(POSENC_STORE_ROW)
}
#undef POSENC_LOAD_FACTORS
#undef POSENC_FACTOR
#undef POSENC_ZERO_ROW
#undef POSENC_MULTIPLY_ROW
#undef POSENC_STORE_ROW

// out[m, :] = (kAdd ? out[m, :] : 0) + Σ_k a[k · a_stride + m] · b[k, :]   for m < 8; out and b are panels
// The previous content of out is added last: each tile is summed on its own before the tiles are, which keeps
// rounding errors small.
template <bool kAdd> HWY_NOINLINE void multiply(const float* HWY_RESTRICT a, std::int64_t a_stride,
                                                const float* HWY_RESTRICT b, std::int64_t depth,
                                                float* HWY_RESTRICT out) {
  for (std::int64_t m = 0; m < kGroup; m += kRowsAtOnce) {
    multiply_rows<kAdd>(a + m, a_stride, b, depth, out + m * panel_width());
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
