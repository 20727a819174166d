#include "kernels/cpu/narrow_pair.h"

#include "kernels/cpu/wave_pair.h"
#include "numerics/narrow.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/narrow_pair.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/convert-inl.h"
#include "kernels/cpu/fetch.h"

// A 16-bit type has so few digits that float32 decides nearly every rounding: the exact value lies between value −
// error and value + error, rounding is monotone, and if both ends round to the same number, so does the exact value.
// The few others are listed. The ends never equal the exact value, so it does not matter how a tie at an end is
// rounded.

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
// Two vectors of floats form one of 16-bit lanes, no longer than a piece.
using DF = hn::CappedTag<float, kPieceColumns / 2>;
using D16 = hn::Repartition<std::uint16_t, DF>;
using VF = hn::Vec<DF>;
using V16 = hn::Vec<D16>;
using DHalf = hn::Rebind<std::uint16_t, DF>;

HWY_INLINE V16 rounded(VF low, VF high, BFloat16 /*type*/) {
  const hn::RebindToUnsigned<DF> du;
#if HWY_TARGET == HWY_NEON
  return V16(vrshrn_high_n_u32(vrshrn_n_u32(hn::BitCast(du, low).raw, 16), hn::BitCast(du, high).raw, 16));
#else
  const auto half = hn::Set(du, 0x8000);
  const auto lower = hn::ShiftRight<16>(hn::Add(hn::BitCast(du, low), half));
  const auto upper = hn::ShiftRight<16>(hn::Add(hn::BitCast(du, high), half));
  return hn::Combine(D16(), hn::TruncateTo(DHalf(), upper), hn::TruncateTo(DHalf(), lower));
#endif
}

HWY_INLINE V16 rounded(VF low, VF high, Half /*type*/) {
#if POSENC_NATIVE_F16
  const hn::Rebind<hwy::float16_t, DF> half;
  return hn::Combine(D16(), hn::BitCast(DHalf(), hn::DemoteTo(half, high)),
                     hn::BitCast(DHalf(), hn::DemoteTo(half, low)));
#else
  return hn::Combine(D16(), hn::TruncateTo(DHalf(), to_f16_lanes(DF(), high)),
                     hn::TruncateTo(DHalf(), to_f16_lanes(DF(), low)));
#endif
}

// Both rows from column j on: the upper ends, rounded, and the bits in which the lower ends differ. The error is
// added as part of a fused product, at no cost.
template <class T> HWY_INLINE void find_ends(const NarrowRowPair& g, std::int64_t j, VF error, VF twice_error, T type,
                                             V16& before, V16& before_differs, V16& after, V16& after_differs) {
  const std::int64_t k = j + static_cast<std::int64_t>(hn::Lanes(DF()));
  const VF c0 = hn::LoadU(DF(), g.cosine + j), c1 = hn::LoadU(DF(), g.cosine + k);
  const VF by0 = hn::LoadU(DF(), g.sines + j), by1 = hn::LoadU(DF(), g.sines + k);
  const VF p0 = hn::MulAdd(hn::LoadU(DF(), g.sine + j), hn::LoadU(DF(), g.cosines + j), error);
  const VF p1 = hn::MulAdd(hn::LoadU(DF(), g.sine + k), hn::LoadU(DF(), g.cosines + k), error);
  const VF before0 = hn::NegMulAdd(c0, by0, p0), before1 = hn::NegMulAdd(c1, by1, p1);
  const VF after0 = hn::MulAdd(c0, by0, p0), after1 = hn::MulAdd(c1, by1, p1);
  before = rounded(before0, before1, type);
  after = rounded(after0, after1, type);
  before_differs = hn::Xor(before, rounded(hn::Sub(before0, twice_error), hn::Sub(before1, twice_error), type));
  after_differs = hn::Xor(after, rounded(hn::Sub(after0, twice_error), hn::Sub(after1, twice_error), type));
}

template <class T>
HWY_INLINE std::int64_t narrow_rows(const NarrowRowPair& pair, const NarrowDoubts& doubts, T type) {
  const NarrowRowPair g = pair;  // copies that no store can alias
  const NarrowDoubts found = doubts;
  const auto step = 2 * static_cast<std::int64_t>(hn::Lanes(DF()));
  const auto row_bytes = g.row_stride * static_cast<std::int64_t>(sizeof(std::uint16_t));
  const VF error = hn::Set(DF(), g.error), twice = hn::Set(DF(), 2 * g.error);
  std::int64_t listed = 0;
  V16 before, before_differs, after, after_differs;
  for (std::int64_t piece = 0; piece < g.columns; piece += kPieceColumns) {
    fetch_ahead(g.before + piece, kPieceColumns, -row_bytes);
    fetch_ahead(g.after + piece, kPieceColumns, row_bytes);
    V16 differs = hn::Zero(D16());
    HWY_UNROLL(4)
    for (std::int64_t j = piece; j < piece + kPieceColumns; j += step) {
      find_ends(g, j, error, twice, type, before, before_differs, after, after_differs);
      hn::StoreU(before, D16(), g.before + j);
      hn::StoreU(after, D16(), g.after + j);
      differs = hn::Or(differs, hn::Or(before_differs, after_differs));
    }
    if (HWY_LIKELY(hn::AllTrue(D16(), hn::Eq(differs, hn::Zero(D16()))))) continue;
    found.doubtful[listed++] = static_cast<std::int32_t>(piece);
    for (std::int64_t j = piece; j < piece + kPieceColumns; j += step) {  // again, to find which
      find_ends(g, j, error, twice, type, before, before_differs, after, after_differs);
      hn::StoreU(before_differs, D16(), found.before + j);
      hn::StoreU(after_differs, D16(), found.after + j);
    }
  }
  return listed;
}

#else  // HWY_SCALAR has no vectors to pair

template <class T> std::int64_t narrow_rows(const NarrowRowPair& g, const NarrowDoubts& doubts, T /*type*/) {
  std::int64_t listed = 0;
  for (std::int64_t piece = 0; piece < g.columns; piece += kPieceColumns) {
    bool doubt = false;
    for (std::int64_t j = piece; j < piece + kPieceColumns; ++j) {
      const auto write = [&](float value, std::uint16_t& to, std::uint16_t& differs) {
        to = numerics::narrow<T>(static_cast<double>(value + g.error)).bits;
        differs = static_cast<std::uint16_t>(to ^ numerics::narrow<T>(static_cast<double>(value - g.error)).bits);
        doubt |= differs != 0;
      };
      const float p = g.sine[j] * g.cosines[j], q = g.cosine[j] * g.sines[j];
      write(p - q, g.before[j], doubts.before[j]);
      write(p + q, g.after[j], doubts.after[j]);
    }
    if (doubt) doubts.doubtful[listed++] = static_cast<std::int32_t>(piece);
  }
  return listed;
}

#endif

std::int64_t bf16_rows(const NarrowRowPair& pair, const NarrowDoubts& doubts) {
  return narrow_rows(pair, doubts, BFloat16{});
}
std::int64_t f16_rows(const NarrowRowPair& pair, const NarrowDoubts& doubts) {
  return narrow_rows(pair, doubts, Half{});
}

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::kernels::cpu {

HWY_EXPORT(bf16_rows);
HWY_EXPORT(f16_rows);

std::int64_t narrow_row_pair(const NarrowRowPair& pair, const NarrowDoubts& doubts, BFloat16 /*type*/) noexcept {
  return HWY_DYNAMIC_DISPATCH(bf16_rows)(pair, doubts);
}
std::int64_t narrow_row_pair(const NarrowRowPair& pair, const NarrowDoubts& doubts, Half /*type*/) noexcept {
  return HWY_DYNAMIC_DISPATCH(f16_rows)(pair, doubts);
}

}  // namespace posenc::kernels::cpu
#endif
