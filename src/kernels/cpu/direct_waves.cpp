// Sines and cosines at single positions, a vector of waves at a time. The steps and their error are those of
// numerics::reduce and numerics::round_wave; what is in doubt there is in doubt here.

#include "kernels/cpu/direct_waves.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/direct_waves.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "numerics/wave.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DD = hn::ScalableTag<double>;
using DI = hn::RebindToSigned<DD>;
using VD = hn::Vec<DD>;
using VI = hn::Vec<DI>;

// Rounds value to float32 where both ends of its error agree; whether they do, as lanes of 0 or −1.
HWY_INLINE VI write_rounded(VD value, float* out) {
  const hn::Rebind<float, DD> df;
  const auto error = hn::Mul(hn::Abs(value), hn::Set(DD(), 0x1p-49));
  const auto low = hn::DemoteTo(df, hn::Sub(value, error)), high = hn::DemoteTo(df, hn::Add(value, error));
  hn::StoreU(low, df, out);
  const auto agrees =
      hn::And(hn::Eq(hn::PromoteTo(DD(), low), hn::PromoteTo(DD(), high)), hn::Ne(value, hn::Zero(DD())));
  return hn::VecFromMask(DI(), hn::RebindMask(DI(), agrees));
}

std::int64_t direct(const ReducedAngles& angles, std::int64_t count, double scale, float* HWY_RESTRICT sines,
                    float* HWY_RESTRICT cosines, std::int32_t* HWY_RESTRICT doubtful) {
  const DD d;
  const DI di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto sign_bit = hn::SignBit(d);
  std::int64_t doubts = 0;
  for (std::int64_t i = 0; i < count; i += lanes) {
    const VI rest = hn::LoadU(di, angles.rest.data() + i), radians = hn::LoadU(di, angles.radians.data() + i);
    const VI quarter = hn::LoadU(di, angles.quarter.data() + i), relative = hn::LoadU(di, angles.relative.data() + i);
    const VI below = hn::LoadU(di, reinterpret_cast<const std::int64_t*>(angles.below.data()) + i);
    // From 2^-12 turns up, the angle x + tail comes from integers; below, from the product of doubles.
    const VD whole = hn::ConvertTo(d, radians);
    const VD tail = hn::ConvertTo(d, hn::Sub(radians, hn::ConvertTo(di, whole)));
    const auto sign = hn::And(hn::BitCast(d, rest), sign_bit);
    const VD half_below =
        hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<1>(hn::BitCast(hn::RebindToUnsigned<DI>(), below))));
    const VD turns =
        hn::Add(hn::Mul(hn::ConvertTo(d, rest), hn::Set(d, 0x1p-64)), hn::Mul(half_below, hn::Set(d, 0x1p-127)));
    const auto is_large = hn::RebindMask(d, hn::Gt(hn::Abs(rest), hn::Set(di, (std::int64_t{1} << 52) - 1)));
    const VD x = hn::IfThenElse(is_large, hn::Xor(hn::Mul(whole, hn::Set(d, 0x1p-61)), sign),
                                hn::Mul(turns, hn::Set(d, numerics::kTwoPi)));
    const VD low = hn::IfThenElseZero(is_large, hn::Xor(hn::Mul(tail, hn::Set(d, 0x1p-61)), sign));

    const VD z = hn::Mul(x, x);
    VD s = hn::Set(d, numerics::kSineSeries[7]), c = hn::Set(d, numerics::kCosineSeries[6]);
    for (std::size_t k = 7; k-- > 0;) s = hn::NegMulAdd(z, s, hn::Set(d, numerics::kSineSeries[k]));
    for (std::size_t k = 6; k-- > 0;) c = hn::NegMulAdd(z, c, hn::Set(d, numerics::kCosineSeries[k]));
    const VD one = hn::Set(d, 1.0);
    const VD cosine =
        hn::Sub(one, hn::Add(hn::Mul(hn::Set(d, 0.5), z), hn::Sub(hn::Mul(x, low), hn::Mul(z, hn::Mul(z, c)))));
    const VD sine = hn::Add(x, hn::Sub(hn::Mul(low, cosine), hn::Mul(x, hn::Mul(z, s))));

    // Quarters: sine, cosine, −sine, −cosine.
    const auto is_odd = hn::RebindMask(d, hn::Ne(hn::And(quarter, hn::Set(di, 1)), hn::Zero(di)));
    const auto flip = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(quarter, hn::Set(di, 2))));
    const auto flip_next =
        hn::BitCast(d, hn::ShiftLeft<62>(hn::And(hn::Add(quarter, hn::Set(di, 1)), hn::Set(di, 2))));
    const VD factor = hn::Set(d, scale);
    const VI sine_is_sure =
        write_rounded(hn::Mul(hn::Xor(hn::IfThenElse(is_odd, cosine, sine), flip), factor), sines + i);
    const VI cosine_is_sure =
        write_rounded(hn::Mul(hn::Xor(hn::IfThenElse(is_odd, sine, cosine), flip_next), factor), cosines + i);
    const auto all_sure = hn::And(hn::And(sine_is_sure, cosine_is_sure), relative);
    if (hn::AllTrue(di, hn::Lt(all_sure, hn::Zero(di)))) continue;
    for (std::int64_t n = i; n < std::min(i + lanes, count); ++n) doubtful[doubts++] = static_cast<std::int32_t>(n);
  }
  return doubts;
}

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::kernels::cpu {

HWY_EXPORT(direct);

void ReducedAngles::resize(std::size_t count) {
  if (rest.size() == count + kDirectPadding) return;
  for (auto* list : {&quarter, &rest, &radians, &relative}) list->assign(count + kDirectPadding, 0);
  below.assign(count + kDirectPadding, 0);
}

std::int64_t direct_waves(const ReducedAngles& angles, std::int64_t count, double scale, float* sines, float* cosines,
                          std::int32_t* doubtful) noexcept {
  return HWY_DYNAMIC_DISPATCH(direct)(angles, count, scale, sines, cosines, doubtful);
}

}  // namespace posenc::kernels::cpu
#endif
