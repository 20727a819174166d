#include "kernels/cpu/wave_pair.h"

#include <algorithm>
#include <bit>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/wave_pair.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/fetch.h"
#include "kernels/cpu/here-inl.h"

// A double with an error of at most E may round to the wrong float only if a midpoint between two floats lies within
// E. Two tests detect this; both may doubt a correct value, neither accepts a wrong one.
//   exact: the roundings of both ends, value ± E, differ. Needs two conversions, which are slow.
//   quick: the value was computed too large by a factor of 1 + kLarger, which outweighs E if it is at least
//     kSmall · |scale|. The exact value then lies between value · (1 − 2 kLarger) and the value, and there is doubt
//     only if the value is at a midpoint or just above. A midpoint is 1 followed by 28 zeros in the low 29 bits of
//     the double. Small values are in doubt, too.
//
// The quick test looks at two 16-bit numbers of each double, the upper halves of its low and of its high word, and
// keeps the minimum of each:
//   low word:  3 bits of the float, then the 13 highest of the 29 that are rounded off. Times 8, only these remain,
//     and a midpoint is the smallest signed number.
//   high word: sign, 11 bits of exponent, 4 of mantissa. Times 2, the sign is gone; the rest, for a value below 2, is
//     a positive number that grows with the value.

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// 2 kLarger of a double is below 2^54 · kLarger units of its last bit; the 13 bits count 2^16 of them, times eight.
constexpr auto kMidpoint = std::numeric_limits<std::int16_t>::min();
constexpr auto kDoubtful = static_cast<std::int16_t>(kMidpoint + static_cast<int>(8 * 0x1p54 * kLarger * 0x1p-16));
static_assert(0x1p54 * kLarger * 0x1p-16 == 2);

// Four vectors of doubles are no longer than a piece.
using DD = hn::CappedTag<double, kPieceColumns / 4>;
using DF = hn::CappedTag<float, kPieceColumns / 2>;
using D16 = hn::CappedTag<std::uint16_t, kPieceColumns>;
using DI16 = hn::RebindToSigned<D16>;
using D32 = hn::RebindToUnsigned<DF>;
using D64 = hn::RebindToUnsigned<DD>;
using VD = hn::Vec<DD>;

// A vector of doubles, as 16-bit words: `low` twice, `high` twice, for each.
HWY_INLINE hn::Vec<D16> halves(std::uint16_t low, std::uint16_t high) {
  return hn::BitCast(D16(), hn::Set(D64(), 0x1'0001ULL * low | 0x1'0001'0000'0000ULL * high));
}

// The upper halves of all words, of `odd` in odd lanes, of `even` in even ones.
HWY_INLINE hn::Vec<D16> upper_halves(VD odd, VD even) {
  const auto a = hn::BitCast(D32(), odd), b = hn::BitCast(D32(), even);
#if HWY_TARGET == HWY_NEON
  return hn::BitCast(D16(), hn::Vec<D32>(vsriq_n_u32(a.raw, b.raw, 16)));
#else
  return hn::OddEven(hn::BitCast(D16(), a), hn::BitCast(D16(), hn::ShiftRight<16>(b)));
#endif
}
HWY_INLINE hn::Vec<DI16> signed_of(hn::Vec<D16> v) { return hn::BitCast(DI16(), v); }

HWY_INLINE hn::Vec<hn::Rebind<float, DD>> half_float(VD v) { return hn::DemoteTo(hn::Rebind<float, DD>(), v); }
HWY_INLINE hn::Vec<DF> to_float(VD low, VD high) { return hn::Combine(DF(), half_float(high), half_float(low)); }

// Products and sums are not fused: the same doubles on every machine, and no slower here.
HWY_INLINE void find_rows(const WaveRowPair& g, std::int64_t j, VD& before, VD& after) {
  const VD p = hn::Mul(hn::LoadU(DD(), g.sine + j), hn::LoadU(DD(), g.cosines + j));
  const VD q = hn::Mul(hn::LoadU(DD(), g.cosine + j), hn::LoadU(DD(), g.sines + j));
  before = hn::Sub(p, q);
  after = hn::Add(p, q);
}

// Two vectors of doubles of both rows: the computed ones are written to column j, and those of column `next` are
// computed in their place. Neither depends on the other, and this order is the fastest.
HWY_INLINE void write_and_find(const WaveRowPair& g, std::int64_t j, std::int64_t next, hn::Vec<D16> factors, VD& a0,
                               VD& a1, VD& b0, VD& b1, hn::Vec<DI16>& nearest_a, hn::Vec<DI16>& nearest_b) {
  const auto after_next = next + static_cast<std::int64_t>(hn::Lanes(DD()));
  const auto low_a = here(half_float(a0)), low_b = here(half_float(b0));
  const VD s0 = hn::LoadU(DD(), g.sine + next), s1 = hn::LoadU(DD(), g.sine + after_next);
  const VD cs0 = hn::LoadU(DD(), g.cosines + next), cs1 = hn::LoadU(DD(), g.cosines + after_next);
  const VD c0 = hn::LoadU(DD(), g.cosine + next), c1 = hn::LoadU(DD(), g.cosine + after_next);
  const VD sn0 = hn::LoadU(DD(), g.sines + next), sn1 = hn::LoadU(DD(), g.sines + after_next);
  const auto a = here(hn::Combine(DF(), half_float(a1), low_a));
  hn::StoreU(a, DF(), g.before + j);
  auto test_b = here(upper_halves(b0, b1));
  const auto b = here(hn::Combine(DF(), half_float(b1), low_b));
  hn::StoreU(b, DF(), g.after + j);
  const VD p0 = here(hn::Mul(s0, cs0));
  auto test_a = here(upper_halves(a0, a1));
  const VD q0 = here(hn::Mul(c0, sn0)), p1 = here(hn::Mul(s1, cs1));
  test_b = here(hn::Mul(test_b, factors));
  test_a = here(hn::Mul(test_a, factors));
  nearest_a = here(hn::Min(nearest_a, signed_of(test_a)));
  const VD q1 = here(hn::Mul(c1, sn1));
  b1 = here(hn::Add(p1, q1));
  a0 = here(hn::Sub(p0, q0));
  nearest_b = here(hn::Min(nearest_b, signed_of(test_b)));
  a1 = here(hn::Sub(p1, q1));
  b0 = here(hn::Add(p0, q0));
}

// Tests one piece of a row exactly; true if a rounding is in doubt.
template <bool kAfter> HWY_INLINE bool write_exactly(const WaveRowPair& g, std::int64_t piece) {
  const auto length = static_cast<std::int64_t>(hn::Lanes(DD()));
  const auto error = hn::Set(DD(), kWaveError * g.scale), smaller = hn::Set(DD(), 1 - kLarger);
  auto differs = hn::Zero(D32());
  for (std::int64_t j = piece; j < piece + kPieceColumns; j += 2 * length) {
    VD a0, a1, b0, b1;
    find_rows(g, j, a0, b0);
    find_rows(g, j + length, a1, b1);
    const VD v0 = hn::Mul(kAfter ? b0 : a0, smaller), v1 = hn::Mul(kAfter ? b1 : a1, smaller);
    const auto most = to_float(hn::Add(v0, error), hn::Add(v1, error));
    const auto least = to_float(hn::Sub(v0, error), hn::Sub(v1, error));
    hn::StoreU(most, DF(), (kAfter ? g.after : g.before) + j);
    differs = hn::Or(differs, hn::Xor(hn::BitCast(D32(), most), hn::BitCast(D32(), least)));
  }
  return !hn::AllTrue(D32(), hn::Eq(differs, hn::Zero(D32())));
}

std::int64_t waves(const WaveRowPair& pair, const WaveDoubts& doubts) {
  const WaveRowPair g = pair;  // a copy that no store can alias
  const auto length = static_cast<std::int64_t>(hn::Lanes(DD())), step = 2 * length;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(DI16()));
  const auto row_bytes = g.row_stride * static_cast<std::int64_t>(sizeof(float));
  const auto factors = halves(8, 2);
  // Two steps are in flight at a time.
  VD a0, a1, b0, b1, next_a0, next_a1, next_b0, next_b1;
  find_rows(g, 0, a0, b0);
  find_rows(g, length, a1, b1);
  find_rows(g, step, next_a0, next_b0);
  find_rows(g, step + length, next_a1, next_b1);
  std::int16_t* nearest = doubts.nearest;
  for (std::int64_t piece = 0; piece < g.columns; piece += kPieceColumns, nearest += 2 * lanes) {
    fetch_ahead(g.before + piece, kPieceColumns, -row_bytes);
    fetch_ahead(g.after + piece, kPieceColumns, row_bytes);
    auto before = hn::Set(DI16(), std::numeric_limits<std::int16_t>::max()), after = before;
    HWY_UNROLL(4)
    for (std::int64_t at = 0; at < kPieceColumns; at += 2 * step) {
      const std::int64_t j = piece + at;
      write_and_find(g, j, j + 2 * step, factors, a0, a1, b0, b1, before, after);
      write_and_find(g, j + step, j + 3 * step, factors, next_a0, next_a1, next_b0, next_b1, before, after);
    }
    hn::StoreU(before, DI16(), nearest);
    hn::StoreU(after, DI16(), nearest + lanes);
  }

  // Below the smallest normal float other bits are rounded off; such values count as small.
  const auto small = std::bit_cast<std::uint64_t>(std::max(kSmall * g.scale, 0x1p-126)) >> 48;
  const auto bounds =
      signed_of(halves(static_cast<std::uint16_t>(kDoubtful), static_cast<std::uint16_t>(2 * small + 2)));
  const auto doubted = [&](hn::Vec<DI16> v) { return !hn::AllFalse(DI16(), hn::Lt(v, bounds)); };
  std::int64_t listed = 0;
  nearest = doubts.nearest;
  for (std::int64_t piece = 0; piece < g.columns; piece += kPieceColumns, nearest += 2 * lanes) {
    const auto before = hn::LoadU(DI16(), nearest), after = hn::LoadU(DI16(), nearest + lanes);
    if (!doubted(hn::Min(before, after))) continue;  // thirty-nine of forty
    bool doubt = false;
    if (doubted(before)) doubt |= write_exactly<false>(g, piece);
    if (doubted(after)) doubt |= write_exactly<true>(g, piece);
    if (doubt) doubts.doubtful[listed++] = static_cast<std::int32_t>(piece);
  }
  return listed;
}

#else  // HWY_SCALAR has no vectors to pair up: one column at a time, by the exact test

std::int64_t waves(const WaveRowPair& g, const WaveDoubts& doubts) {
  std::int64_t listed = 0;
  for (std::int64_t piece = 0; piece < g.columns; piece += kPieceColumns) {
    bool doubt = false;
    for (std::int64_t j = piece; j < piece + kPieceColumns; ++j) {
      const auto write = [&](float* row, double larger) {
        const double value = larger * (1 - kLarger), error = kWaveError * g.scale;
        const auto high = static_cast<float>(value + error), low = static_cast<float>(value - error);
        row[j] = high;
        doubt |= high != low;
      };
      const double p = g.sine[j] * g.cosines[j], q = g.cosine[j] * g.sines[j];
      write(g.before, p - q);
      write(g.after, p + q);
    }
    if (doubt) doubts.doubtful[listed++] = static_cast<std::int32_t>(piece);
  }
  return listed;
}

#endif

void rotate(const double* HWY_RESTRICT sine, const double* HWY_RESTRICT cosine, const double* HWY_RESTRICT sines,
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

HWY_EXPORT(waves);
HWY_EXPORT(rotate);

std::int64_t wave_row_pair(const WaveRowPair& pair, const WaveDoubts& doubts) noexcept {
  return HWY_DYNAMIC_DISPATCH(waves)(pair, doubts);
}
void rotate_centre(const double* sine, const double* cosine, const double* sines, const double* cosines,
                   double* new_sine, double* new_cosine, std::int64_t columns) noexcept {
  HWY_DYNAMIC_DISPATCH(rotate)(sine, cosine, sines, cosines, new_sine, new_cosine, columns);
}

}  // namespace posenc::kernels::cpu
#endif
