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

// Sums of two doubles are passed as two vectors: a vector of unknown length (SVE) cannot be part of a struct.

#if HWY_NATIVE_FMA
HWY_INLINE VD product_error(VD a, VD b, VD product) { return hn::MulSub(a, b, product); }
#else
// Dekker's: each factor in two halves of 26 bits, whose products are exact.
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

// The product of column j of both as a rounded product and what is missing; low · low is left out.
HWY_INLINE void multiply(const WideColumns& x, const WideColumns& y, std::int64_t j, VD& high, VD& low) {
  const VD a = hn::LoadU(DD(), x.high + j), b = hn::LoadU(DD(), y.high + j);
  high = hn::Mul(a, b);
  low = hn::MulAdd(a, hn::LoadU(DD(), y.low + j), product_error(a, b, high));
  low = hn::MulAdd(hn::LoadU(DD(), x.low + j), b, low);
}

// What the rounded sum of a and b misses (Knuth).
HWY_INLINE VD sum_error(VD a, VD b, VD sum) {
  const VD of_b = hn::Sub(sum, a);
  return hn::Add(hn::Sub(a, hn::Sub(sum, of_b)), hn::Sub(b, of_b));
}

// The product of column j of both, split at the nearest multiple of the last bit of `grid`: sums of such upper parts are
// exact, where Knuth's sum of two doubles takes six additions. The product is upper − excess.
HWY_INLINE void multiply_on_grid(const WideColumns& x, const WideColumns& y, std::int64_t j, VD grid, VD& upper,
                                 VD& excess) {
  const VD a = hn::LoadU(DD(), x.high + j), b = hn::LoadU(DD(), y.high + j);
#if HWY_NATIVE_FMA
  upper = hn::Sub(hn::MulAdd(a, b, grid), grid);
  excess = hn::NegMulAdd(a, b, upper);
#else
  const VD product = hn::Mul(a, b);
  upper = hn::Sub(hn::Add(product, grid), grid);
  excess = hn::Sub(hn::Sub(upper, product), product_error(a, b, product));
#endif
  excess = hn::NegMulAdd(a, hn::LoadU(DD(), y.low + j), excess);
  excess = hn::NegMulAdd(hn::LoadU(DD(), x.low + j), b, excess);
}

// The two ends of what upper − excess may be, rounded: rounding is monotone, so where they agree the value rounds there,
// too. Writes one of them; returns the bits in which they differ.
HWY_INLINE hn::Vec<hn::RebindToUnsigned<DD>> write_ends(VD upper, VD excess, VD error, double* out) {
  const hn::RebindToUnsigned<DD> d64;
  const VD most = hn::Sub(upper, hn::Sub(excess, error)), least = hn::Sub(upper, hn::Add(excess, error));
  hn::StoreU(most, DD(), out);
  return hn::Xor(hn::BitCast(d64, most), hn::BitCast(d64, least));
}

std::int64_t wide_rows(const WideRowPair& pair, std::int32_t* doubtful) {
  const WideRowPair g = pair;  // a copy that no store can alias
  const hn::RebindToUnsigned<DD> d64;
  const VD error = hn::Set(DD(), g.error), grid = hn::Set(DD(), g.grid);
  const auto row_bytes = g.row_stride * static_cast<std::int64_t>(sizeof(double));
  std::int64_t listed = 0;
  for (std::int64_t piece = 0; piece < g.columns; piece += kPieceColumns) {
    fetch_ahead(g.before + piece, kPieceColumns, -row_bytes);
    fetch_ahead(g.after + piece, kPieceColumns, row_bytes);
    auto differs = hn::Zero(d64);
    HWY_UNROLL(2)
    for (std::int64_t j = piece; j < piece + kPieceColumns; j += static_cast<std::int64_t>(hn::Lanes(DD()))) {
      VD p, p_excess, q, q_excess;
      multiply_on_grid(g.sine, g.cosines, j, grid, p, p_excess);
      multiply_on_grid(g.cosine, g.sines, j, grid, q, q_excess);
      const auto before = write_ends(hn::Sub(p, q), hn::Sub(p_excess, q_excess), error, g.before + j);
      const auto after = write_ends(hn::Add(p, q), hn::Add(p_excess, q_excess), error, g.after + j);
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

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::kernels::cpu {

HWY_EXPORT(wide_rows);
HWY_EXPORT(rotate_columns);

std::int64_t wide_row_pair(const WideRowPair& pair, std::int32_t* doubtful) noexcept {
  return HWY_DYNAMIC_DISPATCH(wide_rows)(pair, doubtful);
}
double wide_grid(double scale) noexcept {
  int exponent = 0;
  std::frexp(scale, &exponent);  // |scale| < 2^exponent
  return std::ldexp(1.5, exponent + 12);
}
void rotate_wide(const WideRotation& rotation) noexcept { HWY_DYNAMIC_DISPATCH(rotate_columns)(rotation); }

}  // namespace posenc::kernels::cpu
#endif
