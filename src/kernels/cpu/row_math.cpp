#include "kernels/cpu/row_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_math.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/convert-inl.h"
#include "kernels/cpu/fetch.h"
#include "numerics/narrow.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What is left over when the vectors are used up.
template <class W, class T> HWY_INLINE W widened(T x) { return static_cast<W>(numerics::widen(x)); }
template <class T, class W> HWY_INLINE T narrowed(W x) { return numerics::narrow<T>(static_cast<double>(x)); }

template <class T, class W>
HWY_INLINE void add(T* out, const T* x, const W* HWY_RESTRICT p, std::int64_t n, const T* next) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  // A store loop must be unrolled to reach the memory's speed.
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    fetch(next + i);
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
    add(job.out + row * job.out_stride, job.x + row * job.x_stride, job.p + row * job.p_stride, job.columns,
        job.next + row * job.x_stride);
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
// A double that is off by at most E may round to the wrong float only if a midpoint between two floats lies within E.
// Two tests find out; both may doubt a good value, neither passes a bad one.
//   exactly: the roundings of both ends, value ± E, differ. Two conversions, which are slow.
//   quickly: the value came out too large by a factor of 1 + kLarger, which outweighs E if it is at least
//     kSmall · |scale|. The true value then lies between value · (1 − 2 kLarger) and the value, and there is doubt
//     only if the value is at a midpoint or just above. A midpoint is 1 followed by 28 zeros in the low 29 bits of
//     the double: the upper 16 of these, as a signed number, are the least there is. Small values are in doubt, too.

#if HWY_TARGET != HWY_SCALAR
// 2 kLarger of a double is below 2^54 · kLarger units of its last bit; the 16 bits leave 13 of them out, and one unit
// more for what is cut.
constexpr int kDoubtful = -0x8000 + static_cast<int>(0x1p54 * kLarger * 0x1p-13) + 1;

// Two vectors of doubles are no longer than a piece.
using DD = hn::CappedTag<double, kPieceColumns / 2>;
using DF = hn::CappedTag<float, kPieceColumns>;
using D16 = hn::CappedTag<std::uint16_t, 2 * kPieceColumns>;
using DI16 = hn::RebindToSigned<D16>;
using DU = hn::RebindToUnsigned<DF>;
using VD = hn::Vec<DD>;

HWY_INLINE hn::Vec<DF> to_float(VD low, VD high) {
  const hn::Rebind<float, DD> half;
  return hn::Combine(DF(), hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}

// The upper 16 of the low 29 bits of four vectors of doubles.
HWY_INLINE hn::Vec<DI16> rounded_off(VD a0, VD a1, VD b0, VD b1) {
  const auto a = hn::ConcatEven(DU(), hn::BitCast(DU(), a1), hn::BitCast(DU(), a0));
  const auto b = hn::ConcatEven(DU(), hn::BitCast(DU(), b1), hn::BitCast(DU(), b0));
#if HWY_TARGET == HWY_NEON
  return hn::BitCast(DI16(), hn::Vec<D16>(vshrn_high_n_u32(vshrn_n_u32(a.raw, 13), b.raw, 13)));
#else
  return hn::BitCast(
      DI16(), hn::ConcatOdd(D16(), hn::BitCast(D16(), hn::ShiftLeft<3>(b)), hn::BitCast(D16(), hn::ShiftLeft<3>(a))));
#endif
}

// Two vectors of doubles of both rows, from here on.
struct RowPairPart {
  const double *sine, *cosine, *cosines, *sines;
  float *before, *after;
};
HWY_INLINE RowPairPart part_of(const WaveRowPair& g, std::int64_t j) {
  return {g.sine + j, g.cosine + j, g.cosines + j, g.sines + j, g.before + j, g.after + j};
}
// Products and sums, not fused: the same doubles on every machine, and no slower here.
HWY_INLINE void find_rows(const RowPairPart& g, std::int64_t at, VD& a, VD& b) {
  const VD p = hn::Mul(hn::LoadU(DD(), g.sine + at), hn::LoadU(DD(), g.cosines + at));
  const VD q = hn::Mul(hn::LoadU(DD(), g.cosine + at), hn::LoadU(DD(), g.sines + at));
  a = hn::Sub(p, q);
  b = hn::Add(p, q);
}

HWY_INLINE void write_part(const RowPairPart& g, std::int64_t at, hn::Vec<DI16>& nearest, hn::Vec<D16>& smallest) {
  const auto length = static_cast<std::int64_t>(hn::Lanes(DD()));
  VD a0, a1, b0, b1;
  find_rows(g, at, a0, b0);
  find_rows(g, at + length, a1, b1);
  const auto a = to_float(a0, a1), b = to_float(b0, b1);
  hn::StoreU(a, DF(), g.before + at);
  hn::StoreU(b, DF(), g.after + at);
  nearest = hn::Min(nearest, rounded_off(a0, a1, b0, b1));
  const auto top = hn::ConcatOdd(D16(), hn::BitCast(D16(), b), hn::BitCast(D16(), a));
  smallest = hn::Min(smallest, hn::ShiftLeft<1>(top));  // without the sign
}

// A piece of two rows, kPieceColumns wide from column j; true where a rounding is in doubt.
HWY_INLINE bool write_piece(const WaveRowPair& pair, std::int64_t j) {
  const auto step = 2 * static_cast<std::int64_t>(hn::Lanes(DD()));
  RowPairPart g = part_of(pair, j);
  // Two of each, so that one does not wait for the other.
  auto nearest = hn::Set(DI16(), 0x7FFF), next_nearest = nearest;
  auto smallest = hn::Set(D16(), 0xFFFF), next_smallest = smallest;
  std::int64_t left = kPieceColumns;
  for (; left >= 4 * step; left -= 4 * step) {
    write_part(g, 0, nearest, smallest);
    write_part(g, step, next_nearest, next_smallest);
    write_part(g, 2 * step, nearest, smallest);
    write_part(g, 3 * step, next_nearest, next_smallest);
    g = {g.sine + 4 * step,  g.cosine + 4 * step, g.cosines + 4 * step,
         g.sines + 4 * step, g.before + 4 * step, g.after + 4 * step};
  }
  for (std::int64_t at = 0; at < left; at += step) write_part(g, at, nearest, smallest);
  const auto near = hn::Lt(hn::Min(nearest, next_nearest), hn::Set(DI16(), kDoubtful));
  const auto small = hn::Lt(hn::Min(smallest, next_smallest), hn::Set(D16(), pair.small_bits));
  return !hn::AllFalse(D16(), hn::Or(hn::RebindMask(D16(), near), small));
}

// The same by the exact test.
HWY_INLINE bool write_piece_exactly(const WaveRowPair& pair, std::int64_t j) {
  const auto length = static_cast<std::int64_t>(hn::Lanes(DD()));
  const RowPairPart g = part_of(pair, j);
  const auto error = hn::Set(DD(), pair.error), smaller = hn::Set(DD(), 1 - kLarger);
  auto differs = hn::Zero(DU());
  const auto write = [&](VD low, VD high, float* out) {
    const VD v0 = hn::Mul(low, smaller), v1 = hn::Mul(high, smaller);
    const auto most = to_float(hn::Add(v0, error), hn::Add(v1, error));
    const auto least = to_float(hn::Sub(v0, error), hn::Sub(v1, error));
    hn::StoreU(most, DF(), out);
    differs = hn::Or(differs, hn::Xor(hn::BitCast(DU(), most), hn::BitCast(DU(), least)));
  };
  for (std::int64_t at = 0; at < kPieceColumns; at += 2 * length) {
    VD a0, a1, b0, b1;
    find_rows(g, at, a0, b0);
    find_rows(g, at + length, a1, b1);
    write(a0, a1, g.before + at);
    write(b0, b1, g.after + at);
  }
  return !hn::AllTrue(DU(), hn::Eq(differs, hn::Zero(DU())));
}

std::int64_t waves(const WaveRowPair& pair, std::int32_t* doubtful) {
  const WaveRowPair g = pair;  // a copy that no store can alias
  std::int64_t doubts = 0;
  for (std::int64_t j = 0; j < g.columns; j += kPieceColumns) {
    // Quick tests list what they doubt, for later: a branch on what has just left the vector unit would stall.
    const bool doubt = write_piece(g, j);
    doubtful[doubts] = static_cast<std::int32_t>(j);
    doubts += doubt ? 1 : 0;
  }
  std::int64_t left = 0;
  for (std::int64_t i = 0; i < doubts; ++i) {
    if (write_piece_exactly(g, doubtful[i])) doubtful[left++] = doubtful[i];
  }
  return left;
}

#else  // HWY_SCALAR has no vectors to pair up: one column at a time, by the exact test

std::int64_t waves(const WaveRowPair& g, std::int32_t* doubtful) {
  std::int64_t doubts = 0;
  for (std::int64_t piece = 0; piece < g.columns; piece += kPieceColumns) {
    bool doubt = false;
    for (std::int64_t j = piece; j < piece + kPieceColumns; ++j) {
      const auto write = [&](float* row, double larger) {
        const double value = larger * (1 - kLarger);
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
void turn_centre(const double* sine, const double* cosine, const double* sines, const double* cosines,
                 double* new_sine, double* new_cosine, std::int64_t columns) noexcept {
  HWY_DYNAMIC_DISPATCH(turn)(sine, cosine, sines, cosines, new_sine, new_cosine, columns);
}

}  // namespace posenc::kernels::cpu
#endif
