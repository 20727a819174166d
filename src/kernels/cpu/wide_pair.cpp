#include "kernels/cpu/wide_pair.h"

#include <cmath>

#include "kernels/cpu/wave_pair.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/wide_pair.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/fetch.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DD = hn::CappedTag<double, kPieceColumns / 4>;
using VD = hn::Vec<DD>;

// Sums of two doubles are passed as two vectors, because a vector of unknown length (SVE) cannot be a struct member.

#if HWY_NATIVE_FMA
HWY_INLINE VD product_error(VD a, VD b, VD product) { return hn::MulSub(a, b, product); }
#else
// Dekker's: each factor is split into two halves of 26 bits, whose products are exact.
HWY_INLINE VD upper_half(VD a) {
  const VD t = hn::Mul(a, hn::Set(DD(), 0x1p27 + 1));
  return hn::Sub(t, hn::Sub(t, a));
}
HWY_INLINE VD product_error(VD a, VD b, VD product) {
  const VD a1 = upper_half(a), a0 = hn::Sub(a, a1), b1 = upper_half(b), b0 = hn::Sub(b, b1);
  const VD e = hn::Sub(hn::Mul(a1, b1), product);
  return hn::Add(hn::Add(hn::Add(e, hn::Mul(a1, b0)), hn::Mul(a0, b1)), hn::Mul(a0, b0));
}
#endif

// The product of column j of both, as a rounded product and its error; low · low is omitted.
HWY_INLINE void multiply(const WideColumns& x, const WideColumns& y, std::int64_t j, VD& high, VD& low) {
  const VD a = hn::LoadU(DD(), x.high + j), b = hn::LoadU(DD(), y.high + j);
  high = hn::Mul(a, b);
  low = hn::MulAdd(a, hn::LoadU(DD(), y.low + j), product_error(a, b, high));
  low = hn::MulAdd(hn::LoadU(DD(), x.low + j), b, low);
}

// The rounding error of the sum of a and b (Knuth).
HWY_INLINE VD sum_error(VD a, VD b, VD sum) {
  const VD of_b = hn::Sub(sum, a);
  return hn::Add(hn::Sub(a, hn::Sub(sum, of_b)), hn::Sub(b, of_b));
}

// Rounds the two ends of the interval of upper + lower. Rounding is monotone, so if they agree, the value rounds
// there too. Writes one of them; returns the bits in which they differ.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<DD>> write_ends(VD upper, VD lower, VD error, double* out) {
  const hn::RebindToUnsigned<DD> d64;
  const VD most = hn::Add(upper, hn::Add(lower, error)), least = hn::Add(upper, hn::Sub(lower, error));
  hn::StoreU(most, DD(), out);
  return hn::Xor(hn::BitCast(d64, most), hn::BitCast(d64, least));
}

std::int64_t wide_rows(const WideRowPair& pair, std::int32_t* doubtful) {
  const WideRowPair g = pair;  // a copy that no store can alias
  const hn::RebindToUnsigned<DD> d64;
  const VD error = hn::Set(DD(), g.error);
  const auto row_bytes = g.row_stride * static_cast<std::int64_t>(sizeof(double));
  std::int64_t listed = 0;
  for (std::int64_t piece = 0; piece < g.columns; piece += kPieceColumns) {
    fetch_ahead(g.before + piece, kPieceColumns, -row_bytes);
    fetch_ahead(g.after + piece, kPieceColumns, row_bytes);
    auto differs = hn::Zero(d64);
    HWY_UNROLL(2)
    for (std::int64_t j = piece; j < piece + kPieceColumns; j += static_cast<std::int64_t>(hn::Lanes(DD()))) {
      const VD cosines = hn::LoadU(DD(), g.cosines.upper + j), sines = hn::LoadU(DD(), g.sines.upper + j);
      const VD sine = hn::LoadU(DD(), g.sine.upper + j), cosine = hn::LoadU(DD(), g.cosine.upper + j);
      // exact
      const VD product = hn::Mul(sine, cosines);
      const VD upper_before = hn::NegMulAdd(cosine, sines, product), upper_after = hn::MulAdd(cosine, sines, product);
      // (u + l)·(v + m) = u·v + (u + l)·m + l·v
      const VD p = hn::MulAdd(hn::LoadU(DD(), g.sine.lower + j), cosines,
                              hn::Mul(hn::LoadU(DD(), g.rounded_sine + j), hn::LoadU(DD(), g.cosines.lower + j)));
      const VD q = hn::MulAdd(hn::LoadU(DD(), g.cosine.lower + j), sines,
                              hn::Mul(hn::LoadU(DD(), g.rounded_cosine + j), hn::LoadU(DD(), g.sines.lower + j)));
      const auto before = write_ends(upper_before, hn::Sub(p, q), error, g.before + j);
      const auto after = write_ends(upper_after, hn::Add(p, q), error, g.after + j);
      differs = hn::Or(differs, hn::Or(before, after));
    }
    if (HWY_UNLIKELY(!hn::AllTrue(d64, hn::Eq(differs, hn::Zero(d64))))) {
      doubtful[listed++] = static_cast<std::int32_t>(piece);
    }
  }
  return listed;
}

HWY_INLINE void store_normalised(VD high, VD low, double* to_high, double* to_low) {
  const VD sum = hn::Add(high, low);
  hn::StoreU(sum, DD(), to_high);
  hn::StoreU(sum_error(high, low, sum), DD(), to_low);
}

void rotate_columns(const WideRotation& rotation) {
  const WideRotation r = rotation;
  for (std::int64_t j = 0; j < r.columns; j += static_cast<std::int64_t>(hn::Lanes(DD()))) {
    VD p, p_low, q, q_low;
    multiply(r.sine, r.cosines, j, p, p_low);
    multiply(r.cosine, r.sines, j, q, q_low);
    const VD sine = hn::Add(p, q), sine_low = hn::Add(sum_error(p, q, sine), hn::Add(p_low, q_low));
    multiply(r.cosine, r.cosines, j, p, p_low);
    multiply(r.sine, r.sines, j, q, q_low);
    const VD cosine = hn::Sub(p, q), cosine_low = hn::Add(sum_error(p, hn::Neg(q), cosine), hn::Sub(p_low, q_low));
    store_normalised(sine, sine_low, r.sine_high + j, r.sine_low + j);
    store_normalised(cosine, cosine_low, r.cosine_high + j, r.cosine_low + j);
  }
}

void cut_columns(const WideColumns& columns, std::int64_t count, double power, double* upper, double* lower) {
  const VD grid =
      hn::Set(DD(), 0x1.8p26 * power);  // its last bit is 2^-26 · power, and stays so when a value is added
  for (std::int64_t j = 0; j < count; j += static_cast<std::int64_t>(hn::Lanes(DD()))) {
    const VD high = hn::LoadU(DD(), columns.high + j), low = hn::LoadU(DD(), columns.low + j);
    const VD cut = hn::Sub(hn::Add(high, grid), grid);
    hn::StoreU(cut, DD(), upper + j);
    hn::StoreU(hn::Add(hn::Sub(high, cut), low), DD(), lower + j);
  }
}

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::kernels::cpu {

HWY_EXPORT(wide_rows);
HWY_EXPORT(rotate_columns);
HWY_EXPORT(cut_columns);

std::int64_t wide_row_pair(const WideRowPair& pair, std::int32_t* doubtful) noexcept {
  return HWY_DYNAMIC_DISPATCH(wide_rows)(pair, doubtful);
}
double power_from(double size) noexcept {
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // from 1/2 to below 1
  return std::ldexp(1.0, fraction == 0.5 ? exponent - 1 : exponent);
}
void rotate_wide(const WideRotation& rotation) noexcept { HWY_DYNAMIC_DISPATCH(rotate_columns)(rotation); }
void cut_wide(const WideColumns& columns, std::int64_t count, double power, double* upper, double* lower) noexcept {
  HWY_DYNAMIC_DISPATCH(cut_columns)(columns, count, power, upper, lower);
}

}  // namespace posenc::kernels::cpu
#endif
