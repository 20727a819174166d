#include "kernels/cpu/row_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_math.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/convert-inl.h"
#include "numerics/narrow.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What is left over when the vectors are used up.
template <class W, class T> HWY_INLINE W widened(T x) { return static_cast<W>(numerics::widen(x)); }
template <class T, class W> HWY_INLINE T narrowed(W x) { return numerics::narrow<T>(static_cast<double>(x)); }

template <class T, class W> HWY_INLINE void add(T* out, const T* x, const W* HWY_RESTRICT p, std::int64_t n) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  // A store loop must be unrolled to reach the memory's speed.
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = hn::Add(load_as(d, x + i), hn::LoadU(d, p + i));
    const auto b = hn::Add(load_as(d, x + i + lanes), hn::LoadU(d, p + i + lanes));
    const auto c = hn::Add(load_as(d, x + i + 2 * lanes), hn::LoadU(d, p + i + 2 * lanes));
    const auto e = hn::Add(load_as(d, x + i + 3 * lanes), hn::LoadU(d, p + i + 3 * lanes));
    store_as(d, a, out + i);
    store_as(d, b, out + i + lanes);
    store_as(d, c, out + i + 2 * lanes);
    store_as(d, e, out + i + 3 * lanes);
  }
  for (; i < n; ++i) out[i] = narrowed<T>(widened<W>(x[i]) + p[i]);
}
void add_f32(float* out, const float* x, const float* p, std::int64_t n) { add(out, x, p, n); }
void add_f64(double* out, const double* x, const double* p, std::int64_t n) { add(out, x, p, n); }
void add_f16(Half* out, const Half* x, const float* p, std::int64_t n) { add(out, x, p, n); }
void add_bf16(BFloat16* out, const BFloat16* x, const float* p, std::int64_t n) { add(out, x, p, n); }

template <class To, class From>
HWY_INLINE void convert(To* HWY_RESTRICT out, const From* HWY_RESTRICT x, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store_as(d, load_as(d, x + i), out + i);
  for (; i < n; ++i) out[i] = narrowed<To>(widened<float>(x[i]));
}
void narrow_f16(Half* out, const float* p, std::int64_t n) { convert(out, p, n); }
void narrow_bf16(BFloat16* out, const float* p, std::int64_t n) { convert(out, p, n); }
void widen_f16(float* out, const Half* x, std::int64_t n) { convert(out, x, n); }
void widen_bf16(float* out, const BFloat16* x, std::int64_t n) { convert(out, x, n); }

void sum_f32(double* HWY_RESTRICT sums, const float* HWY_RESTRICT x, std::int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), hn::PromoteTo(d, hn::LoadU(half, x + i))), d, sums + i);
  }
  for (; i < n; ++i) sums[i] += static_cast<double>(x[i]);
}

// --- waves ----------------------------------------------------------------------------------------------------
//
// A double that is off by at most E may round to the wrong float only if it lies within E of a midpoint between two
// floats. Two tests find out; both may doubt a good value, neither passes a bad one.
//   exactly: the roundings of both ends, value ± E, differ. Two conversions, which are slow.
//   quickly: a midpoint is 1 followed by 28 zeros in the low 29 bits of the double, and if |value| ≥ kSmall, E is at
//     most kSlack units of its last bit. Only the upper 13 of the 29 bits are looked at, for eight values at a time;
//     they may be further off by one for what is cut. Small values are in doubt, too.

#if HWY_TARGET != HWY_SCALAR
constexpr int kCutSlack = static_cast<int>(kSlack >> 16) + 2;  // in units of the 13 bits

using DF = hn::ScalableTag<float>;
using DD = hn::ScalableTag<double>;
using D16 = hn::ScalableTag<std::uint16_t>;
using VD = hn::Vec<DD>;

HWY_INLINE hn::Vec<DF> to_float(VD low, VD high) {
  const hn::Rebind<float, DD> half;
  return hn::Combine(DF(), hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}

// The upper halves of the low words of four vectors of doubles.
HWY_INLINE hn::Vec<D16> low_bits(VD a0, VD a1, VD b0, VD b1) {
  const hn::RebindToUnsigned<DF> du;
  const auto a = hn::ConcatEven(du, hn::BitCast(du, a1), hn::BitCast(du, a0));
  const auto b = hn::ConcatEven(du, hn::BitCast(du, b1), hn::BitCast(du, b0));
  return hn::ConcatOdd(D16(), hn::BitCast(D16(), b), hn::BitCast(D16(), a));
}

enum class Test { kQuick, kQuickNoneSmall, kExact };

// One group of rows, one float vector of columns wide; true where a rounding is in doubt.
template <Test kTest> HWY_INLINE bool write_group(const WaveBlock& g, std::int64_t j, float* centre, VD sine0,
                                                  VD sine1, VD cosine0, VD cosine1) {
  const hn::RebindToUnsigned<DF> du;
  const auto length = static_cast<std::int64_t>(hn::Lanes(DD()));
  [[maybe_unused]] const auto error = hn::Set(DD(), g.error);
  auto differs = hn::Zero(du);
  auto nearest = hn::Set(D16(), 0xFFFF), smallest = hn::Set(D16(), 0xFFFF);
  const auto offset = hn::Set(D16(), static_cast<std::uint16_t>(0x8000 + (kCutSlack << 3)));
  // Two rows at a time, a and b.
  const auto write = [&](float* to_a, VD a0, VD a1, float* to_b, VD b0, VD b1) HWY_ATTR {
    if constexpr (kTest == Test::kExact) {
      const auto high_a = to_float(hn::Add(a0, error), hn::Add(a1, error));
      const auto high_b = to_float(hn::Add(b0, error), hn::Add(b1, error));
      const auto low_a = to_float(hn::Sub(a0, error), hn::Sub(a1, error));
      const auto low_b = to_float(hn::Sub(b0, error), hn::Sub(b1, error));
      hn::StoreU(high_a, DF(), to_a);
      hn::StoreU(high_b, DF(), to_b);
      differs = hn::Or(differs, hn::Xor(hn::BitCast(du, high_a), hn::BitCast(du, low_a)));
      differs = hn::Or(differs, hn::Xor(hn::BitCast(du, high_b), hn::BitCast(du, low_b)));
    } else {
      const auto a = to_float(a0, a1), b = to_float(b0, b1);
      hn::StoreU(a, DF(), to_a);
      hn::StoreU(b, DF(), to_b);
      // Shifted so that the 13 bits are on top, then moved so that the doubtful ones wrap around to 0.
      nearest = hn::Min(nearest, hn::Add(hn::ShiftLeft<3>(low_bits(a0, a1, b0, b1)), offset));
      if constexpr (kTest == Test::kQuick) {
        const auto top = hn::ConcatOdd(D16(), hn::BitCast(D16(), b), hn::BitCast(D16(), a));
        smallest = hn::Min(smallest, hn::Add(top, top));  // without the sign
      }
    }
  };
  const double* cosines = g.cosines + j;
  const double* sines = g.sines + j;
  float *before = centre, *after = centre;
#pragma GCC unroll 8
  for (int n = 1; n <= kGroupReach; ++n, cosines += g.table_stride, sines += g.table_stride) {
    before -= g.row_stride;
    after += g.row_stride;
    // Products and sums, not fused: the same doubles on every machine.
    const VD a0 = hn::Mul(sine0, hn::LoadU(DD(), cosines)), a1 = hn::Mul(sine1, hn::LoadU(DD(), cosines + length));
    const VD b0 = hn::Mul(cosine0, hn::LoadU(DD(), sines)), b1 = hn::Mul(cosine1, hn::LoadU(DD(), sines + length));
    if (n < kGroupReach) {
      write(before, hn::Sub(a0, b0), hn::Sub(a1, b1), after, hn::Add(a0, b0), hn::Add(a1, b1));
    } else {
      write(before, hn::Sub(a0, b0), hn::Sub(a1, b1), centre, sine0, sine1);
    }
  }
  if constexpr (kTest == Test::kExact) return !hn::AllTrue(du, hn::Eq(differs, hn::Zero(du)));
  auto doubt = hn::Lt(nearest, hn::Set(D16(), kCutSlack << 4));
  if constexpr (kTest == Test::kQuick) doubt = hn::Or(doubt, hn::Lt(smallest, hn::Set(D16(), g.small_bits)));
  return !hn::AllFalse(D16(), doubt);
}

// All groups of one float vector of columns. Doubts are settled after the last group, not at once: a branch on a
// result that has just left the vector unit would stall every group.
template <Test kTest>
HWY_INLINE void write_columns(const WaveBlock& g, std::int64_t j, DoubtfulTile* doubtful, std::int64_t& doubts) {
  const auto length = static_cast<std::int64_t>(hn::Lanes(DD()));
  const std::int64_t stride = kGroupRows * g.row_stride;
  // Centres of each group, to come back to: sine, cosine of both halves.
  HWY_ALIGN double centres[kMostGroups][4 * hn::MaxLanes(DD())];
  bool doubt[kMostGroups];
  bool any = false;
  VD sine0 = hn::LoadU(DD(), g.sine + j), sine1 = hn::LoadU(DD(), g.sine + j + length);
  VD cosine0 = hn::LoadU(DD(), g.cosine + j), cosine1 = hn::LoadU(DD(), g.cosine + j + length);
  // The entry after the last row's is the step to the next centre.
  const double* step = g.sines + kGroupReach * g.table_stride + j;
  const VD s0 = hn::LoadU(DD(), step), s1 = hn::LoadU(DD(), step + length);
  step = g.cosines + kGroupReach * g.table_stride + j;
  const VD c0 = hn::LoadU(DD(), step), c1 = hn::LoadU(DD(), step + length);
  float* centre = g.out + kGroupReach * g.row_stride + j;
  for (int group = 0; group < g.groups; ++group) {
    doubt[group] = write_group<kTest>(g, j, centre + group * stride, sine0, sine1, cosine0, cosine1);
    any |= doubt[group];
    hn::StoreU(sine0, DD(), centres[group]);
    hn::StoreU(sine1, DD(), centres[group] + length);
    hn::StoreU(cosine0, DD(), centres[group] + 2 * length);
    hn::StoreU(cosine1, DD(), centres[group] + 3 * length);
    const VD next0 = hn::Add(hn::Mul(sine0, c0), hn::Mul(cosine0, s0));
    const VD next1 = hn::Add(hn::Mul(sine1, c1), hn::Mul(cosine1, s1));
    cosine0 = hn::Sub(hn::Mul(cosine0, c0), hn::Mul(sine0, s0));
    cosine1 = hn::Sub(hn::Mul(cosine1, c1), hn::Mul(sine1, s1));
    sine0 = next0;
    sine1 = next1;
  }
  if (HWY_LIKELY(!any)) return;
  for (int group = 0; group < g.groups; ++group) {
    if (!doubt[group]) continue;
    const double* at = centres[group];
    if (write_group<Test::kExact>(g, j, centre + group * stride, hn::LoadU(DD(), at), hn::LoadU(DD(), at + length),
                                  hn::LoadU(DD(), at + 2 * length), hn::LoadU(DD(), at + 3 * length))) {
      doubtful[doubts++] = {static_cast<std::int32_t>(j), group};
    }
  }
}

std::int64_t waves(const WaveBlock& block, DoubtfulTile* doubtful, std::int64_t& lanes) {
  const WaveBlock g = block;  // a copy that no store can alias
  lanes = static_cast<std::int64_t>(hn::Lanes(DF()));
  std::int64_t doubts = 0;
  for (std::int64_t j = 0; j < g.columns; j += lanes) {
    // A slow wave that is far from zero at the first centre stays so in the whole block.
    const VD sine0 = hn::Abs(hn::LoadU(DD(), g.sine + j)), sine1 = hn::Abs(hn::LoadU(DD(), g.sine + j + lanes / 2));
    const auto far0 = hn::Ge(sine0, hn::LoadU(DD(), g.reach + j));
    const auto far1 = hn::Ge(sine1, hn::LoadU(DD(), g.reach + j + lanes / 2));
    if (hn::AllTrue(DD(), hn::And(far0, far1))) {
      write_columns<Test::kQuickNoneSmall>(g, j, doubtful, doubts);
    } else {
      write_columns<Test::kQuick>(g, j, doubtful, doubts);
    }
  }
  return doubts;
}

#else  // HWY_SCALAR has no vectors to pair up: one column at a time, by the exact test

std::int64_t waves(const WaveBlock& g, DoubtfulTile* doubtful, std::int64_t& lanes) {
  lanes = 1;
  std::int64_t doubts = 0;
  for (std::int64_t j = 0; j < g.columns; ++j) {
    double sine = g.sine[j], cosine = g.cosine[j];
    float* centre = g.out + kGroupReach * g.row_stride + j;
    for (int group = 0; group < g.groups; ++group, centre += kGroupRows * g.row_stride) {
      bool doubt = false;
      const auto write = [&](int row, double value) {
        const auto high = static_cast<float>(value + g.error), low = static_cast<float>(value - g.error);
        centre[row * g.row_stride] = high;
        doubt |= high != low;
      };
      write(0, sine);
      for (int n = 1; n <= kGroupReach; ++n) {
        const std::int64_t at = (n - 1) * g.table_stride + j;
        const double a = sine * g.cosines[at], b = cosine * g.sines[at];
        write(-n, a - b);
        if (n < kGroupReach) write(n, a + b);
      }
      if (doubt) doubtful[doubts++] = {static_cast<std::int32_t>(j), group};
      const std::int64_t step = kGroupReach * g.table_stride + j;
      const double next = sine * g.cosines[step] + cosine * g.sines[step];
      cosine = cosine * g.cosines[step] - sine * g.sines[step];
      sine = next;
    }
  }
  return doubts;
}

#endif

void turn(const double* HWY_RESTRICT sine, const double* HWY_RESTRICT cosine, const double* HWY_RESTRICT sines,
          const double* HWY_RESTRICT cosines, double* HWY_RESTRICT new_sine, double* HWY_RESTRICT new_cosine,
          std::int64_t n) {
  const hn::ScalableTag<double> d;
  for (std::int64_t j = 0; j < n; j += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto s = hn::LoadU(d, sine + j), c = hn::LoadU(d, cosine + j);
    const auto by_s = hn::LoadU(d, sines + j), by_c = hn::LoadU(d, cosines + j);
    hn::StoreU(hn::Add(hn::Mul(s, by_c), hn::Mul(c, by_s)), d, new_sine + j);
    hn::StoreU(hn::Sub(hn::Mul(c, by_c), hn::Mul(s, by_s)), d, new_cosine + j);
  }
}

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::kernels::cpu {

HWY_EXPORT(add_f32);
HWY_EXPORT(add_f64);
HWY_EXPORT(add_f16);
HWY_EXPORT(add_bf16);
HWY_EXPORT(narrow_f16);
HWY_EXPORT(narrow_bf16);
HWY_EXPORT(widen_f16);
HWY_EXPORT(widen_bf16);
HWY_EXPORT(sum_f32);
HWY_EXPORT(waves);
HWY_EXPORT(turn);

void add_row(float* out, const float* x, const float* p, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(add_f32)(out, x, p, n);
}
void add_row(double* out, const double* x, const double* p, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(add_f64)(out, x, p, n);
}
void add_row(Half* out, const Half* x, const float* p, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(add_f16)(out, x, p, n);
}
void add_row(BFloat16* out, const BFloat16* x, const float* p, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(add_bf16)(out, x, p, n);
}
void narrow_row(Half* out, const float* p, std::int64_t n) noexcept { HWY_DYNAMIC_DISPATCH(narrow_f16)(out, p, n); }
void narrow_row(BFloat16* out, const float* p, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(narrow_bf16)(out, p, n);
}
void widen_row(float* out, const Half* x, std::int64_t n) noexcept { HWY_DYNAMIC_DISPATCH(widen_f16)(out, x, n); }
void widen_row(float* out, const BFloat16* x, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(widen_bf16)(out, x, n);
}
void sum_row(double* sums, const float* x, std::int64_t n) noexcept { HWY_DYNAMIC_DISPATCH(sum_f32)(sums, x, n); }
std::int64_t wave_block(const WaveBlock& block, DoubtfulTile* doubtful, std::int64_t& lanes) noexcept {
  return HWY_DYNAMIC_DISPATCH(waves)(block, doubtful, lanes);
}
void turn_centre(const double* sine, const double* cosine, const double* sines, const double* cosines,
                 double* new_sine, double* new_cosine, std::int64_t columns) noexcept {
  HWY_DYNAMIC_DISPATCH(turn)(sine, cosine, sines, cosines, new_sine, new_cosine, columns);
}

}  // namespace posenc::kernels::cpu
#endif
