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
template <class T, class W> HWY_INLINE void add_all(const AddRows<T, W>& job) {
  for (std::int64_t row = 0; row < job.rows; ++row) {
    add(job.out + row * job.out_stride, job.x + row * job.x_stride, job.p + row * job.p_stride, job.columns);
  }
}
void add_f32(const AddRows<float, float>& job) { add_all(job); }
void add_f64(const AddRows<double, double>& job) { add_all(job); }
void add_f16(const AddRows<Half, float>& job) { add_all(job); }
void add_bf16(const AddRows<BFloat16, float>& job) { add_all(job); }

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

// A piece of two rows, kPieceColumns wide from column j; true where a rounding is in doubt.
template <Test kTest> HWY_INLINE bool write_piece(const WaveRowPair& g, std::int64_t j) {
  const hn::RebindToUnsigned<DF> du;
  const auto length = static_cast<std::int64_t>(hn::Lanes(DD()));
  [[maybe_unused]] const auto error = hn::Set(DD(), g.error);
  [[maybe_unused]] const auto offset = hn::Set(D16(), static_cast<std::uint16_t>(0x8000 + (kCutSlack << 3)));
  auto differs = hn::Zero(du);
  auto nearest = hn::Set(D16(), 0xFFFF), smallest = hn::Set(D16(), 0xFFFF);
  for (const std::int64_t end = j + kPieceColumns; j < end; j += 2 * length) {
    // Products and sums, not fused: the same doubles on every machine.
    const VD p0 = hn::Mul(hn::LoadU(DD(), g.sine + j), hn::LoadU(DD(), g.cosines + j));
    const VD q0 = hn::Mul(hn::LoadU(DD(), g.cosine + j), hn::LoadU(DD(), g.sines + j));
    const VD p1 = hn::Mul(hn::LoadU(DD(), g.sine + j + length), hn::LoadU(DD(), g.cosines + j + length));
    const VD q1 = hn::Mul(hn::LoadU(DD(), g.cosine + j + length), hn::LoadU(DD(), g.sines + j + length));
    const VD a0 = hn::Sub(p0, q0), a1 = hn::Sub(p1, q1), b0 = hn::Add(p0, q0), b1 = hn::Add(p1, q1);
    if constexpr (kTest == Test::kExact) {
      const auto high_a = to_float(hn::Add(a0, error), hn::Add(a1, error));
      const auto high_b = to_float(hn::Add(b0, error), hn::Add(b1, error));
      const auto low_a = to_float(hn::Sub(a0, error), hn::Sub(a1, error));
      const auto low_b = to_float(hn::Sub(b0, error), hn::Sub(b1, error));
      hn::StoreU(high_a, DF(), g.before + j);
      hn::StoreU(high_b, DF(), g.after + j);
      differs = hn::Or(differs, hn::Xor(hn::BitCast(du, high_a), hn::BitCast(du, low_a)));
      differs = hn::Or(differs, hn::Xor(hn::BitCast(du, high_b), hn::BitCast(du, low_b)));
    } else {
      const auto a = to_float(a0, a1), b = to_float(b0, b1);
      hn::StoreU(a, DF(), g.before + j);
      hn::StoreU(b, DF(), g.after + j);
      // Shifted so that the 13 bits are on top, then moved so that the doubtful ones wrap around to 0.
      nearest = hn::Min(nearest, hn::Add(hn::ShiftLeft<3>(low_bits(a0, a1, b0, b1)), offset));
      if constexpr (kTest == Test::kQuick) {
        const auto top = hn::ConcatOdd(D16(), hn::BitCast(D16(), b), hn::BitCast(D16(), a));
        smallest = hn::Min(smallest, hn::Add(top, top));  // without the sign
      }
    }
  }
  if constexpr (kTest == Test::kExact) return !hn::AllTrue(du, hn::Eq(differs, hn::Zero(du)));
  auto doubt = hn::Lt(nearest, hn::Set(D16(), kCutSlack << 4));
  if constexpr (kTest == Test::kQuick) doubt = hn::Or(doubt, hn::Lt(smallest, hn::Set(D16(), g.small_bits)));
  return !hn::AllFalse(D16(), doubt);
}

std::int64_t waves(const WaveRowPair& pair, std::int32_t* doubtful) {
  const WaveRowPair g = pair;  // a copy that no store can alias
  std::int64_t doubts = 0;
  for (std::int64_t j = 0; j < g.columns; j += kPieceColumns) {
    // Quick tests list what they doubt, for later: a branch on what has just left the vector unit would stall.
    const bool doubt = g.none_small[j / kPieceColumns] != 0 ? write_piece<Test::kQuickNoneSmall>(g, j)
                                                            : write_piece<Test::kQuick>(g, j);
    doubtful[doubts] = static_cast<std::int32_t>(j);
    doubts += doubt ? 1 : 0;
  }
  std::int64_t left = 0;
  for (std::int64_t i = 0; i < doubts; ++i) {
    if (write_piece<Test::kExact>(g, doubtful[i])) doubtful[left++] = doubtful[i];
  }
  return left;
}

#else  // HWY_SCALAR has no vectors to pair up: one column at a time, by the exact test

std::int64_t waves(const WaveRowPair& g, std::int32_t* doubtful) {
  std::int64_t doubts = 0;
  for (std::int64_t piece = 0; piece < g.columns; piece += kPieceColumns) {
    bool doubt = false;
    for (std::int64_t j = piece; j < piece + kPieceColumns; ++j) {
      const auto write = [&](float* row, double value) {
        const auto high = static_cast<float>(value + g.error), low = static_cast<float>(value - g.error);
        row[j] = high;
        doubt |= high != low;
      };
      const double p = g.sine[j] * g.cosines[j], q = g.cosine[j] * g.sines[j];
      write(g.before, p - q);
      write(g.after, p + q);
    }
    if (doubt) doubtful[doubts++] = static_cast<std::int32_t>(piece);
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

void none_small(const double* HWY_RESTRICT centre, const double* HWY_RESTRICT reach, std::uint8_t* HWY_RESTRICT none,
                std::int64_t columns) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t piece = 0; piece < columns; piece += kPieceColumns) {
    auto nearest = hn::Sub(hn::Abs(hn::LoadU(d, centre + piece)), hn::LoadU(d, reach + piece));
    for (std::int64_t j = piece + lanes; j < piece + kPieceColumns; j += lanes) {
      nearest = hn::Min(nearest, hn::Sub(hn::Abs(hn::LoadU(d, centre + j)), hn::LoadU(d, reach + j)));
    }
    none[piece / kPieceColumns] = hn::AllTrue(d, hn::Ge(nearest, hn::Zero(d))) ? 1 : 0;
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
HWY_EXPORT(none_small);

void add_rows(const AddRows<float, float>& job) noexcept { HWY_DYNAMIC_DISPATCH(add_f32)(job); }
void add_rows(const AddRows<double, double>& job) noexcept { HWY_DYNAMIC_DISPATCH(add_f64)(job); }
void add_rows(const AddRows<Half, float>& job) noexcept { HWY_DYNAMIC_DISPATCH(add_f16)(job); }
void add_rows(const AddRows<BFloat16, float>& job) noexcept { HWY_DYNAMIC_DISPATCH(add_bf16)(job); }
void narrow_row(Half* out, const float* p, std::int64_t n) noexcept { HWY_DYNAMIC_DISPATCH(narrow_f16)(out, p, n); }
void narrow_row(BFloat16* out, const float* p, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(narrow_bf16)(out, p, n);
}
void widen_row(float* out, const Half* x, std::int64_t n) noexcept { HWY_DYNAMIC_DISPATCH(widen_f16)(out, x, n); }
void widen_row(float* out, const BFloat16* x, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(widen_bf16)(out, x, n);
}
void sum_row(double* sums, const float* x, std::int64_t n) noexcept { HWY_DYNAMIC_DISPATCH(sum_f32)(sums, x, n); }
std::int64_t wave_row_pair(const WaveRowPair& pair, std::int32_t* doubtful) noexcept {
  return HWY_DYNAMIC_DISPATCH(waves)(pair, doubtful);
}
void find_none_small(const double* centre, const double* reach, std::uint8_t* none, std::int64_t columns) noexcept {
  HWY_DYNAMIC_DISPATCH(none_small)(centre, reach, none, columns);
}
void turn_centre(const double* sine, const double* cosine, const double* sines, const double* cosines,
                 double* new_sine, double* new_cosine, std::int64_t columns) noexcept {
  HWY_DYNAMIC_DISPATCH(turn)(sine, cosine, sines, cosines, new_sine, new_cosine, columns);
}

}  // namespace posenc::kernels::cpu
#endif
