// Sines and cosines at single positions, one vector of waves at a time. The steps and their error are those of
// numerics::reduce and numerics::round_wave; values that are in doubt there are in doubt here.

#include "kernels/cpu/direct_waves.h"

#include <algorithm>
#include <array>

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

// k0 − k1 z + k2 z² … − last · z^7, two terms at a time: half as many dependent steps. The largest term comes last,
// as in Horner's order, so the error is no larger.
HWY_INLINE VD by_pairs(VD z, VD z2, const std::array<double, 9>& k, VD last) {
  const DD d;
  const VD p01 = hn::NegMulAdd(z, hn::Set(d, k[1]), hn::Set(d, k[0]));
  const VD p23 = hn::NegMulAdd(z, hn::Set(d, k[3]), hn::Set(d, k[2]));
  const VD p45 = hn::NegMulAdd(z, hn::Set(d, k[5]), hn::Set(d, k[4]));
  const VD p67 = hn::NegMulAdd(z, last, hn::Set(d, k[6]));
  return hn::MulAdd(z2, hn::MulAdd(z2, hn::MulAdd(z2, p67, p45), p23), p01);
}

// Three passes, because the steps of one wave depend on each other: in a short pass, many waves are in flight at
// once.

void find_radians(const ReducedAngles& angles, std::int64_t count, double* HWY_RESTRICT xs,
                  double* HWY_RESTRICT tails) {
  const DD d;
  const DI di;
  const std::int64_t* HWY_RESTRICT rests = angles.rest.data();
  const std::int64_t* HWY_RESTRICT radians = angles.radians.data();
  const std::uint64_t* HWY_RESTRICT belows = angles.below.data();
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const VI rest = hn::LoadU(di, rests + i), fixed = hn::LoadU(di, radians + i);
    // From 2^-12 turns up, the angle x + tail comes from integers; below, from the product of doubles.
    const VD whole = hn::ConvertTo(d, fixed), left = hn::ConvertTo(d, hn::Sub(fixed, hn::ConvertTo(di, whole)));
    const auto sign = hn::And(hn::BitCast(d, rest), hn::SignBit(d));
    const hn::RebindToUnsigned<DI> du;
    const VD below = hn::ConvertTo(d, hn::BitCast(di, hn::ShiftRight<1>(hn::LoadU(du, belows + i))));
    const VD turns =
        hn::Add(hn::Mul(hn::ConvertTo(d, rest), hn::Set(d, 0x1p-64)), hn::Mul(below, hn::Set(d, 0x1p-127)));
    const auto is_large = hn::RebindMask(d, hn::Gt(hn::Abs(rest), hn::Set(di, (std::int64_t{1} << 52) - 1)));
    const VD by_integers = hn::Xor(hn::Mul(whole, hn::Set(d, 0x1p-61)), sign);
    hn::StoreU(hn::IfThenElse(is_large, by_integers, hn::Mul(turns, hn::Set(d, numerics::kTwoPi))), d, xs + i);
    hn::StoreU(hn::IfThenElseZero(is_large, hn::Xor(hn::Mul(left, hn::Set(d, 0x1p-61)), sign)), d, tails + i);
  }
}

void find_waves(const double* HWY_RESTRICT xs, const double* HWY_RESTRICT tails, std::int64_t count,
                double* HWY_RESTRICT sines, double* HWY_RESTRICT cosines) {
  const DD d;
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const VD x = hn::LoadU(d, xs + i), low = hn::LoadU(d, tails + i);
    const VD z = hn::Mul(x, x), z2 = hn::Mul(z, z);
    const VD s = by_pairs(z, z2, numerics::kSineSeries, hn::Set(d, numerics::kSineSeries[7]));
    const VD c = by_pairs(z, z2, numerics::kCosineSeries, hn::Zero(d));
    const VD bend = hn::Sub(hn::Mul(x, low), hn::Mul(z2, c));
    const VD cosine = hn::Sub(hn::Set(d, 1.0), hn::Add(hn::Mul(hn::Set(d, 0.5), z), bend));
    hn::StoreU(cosine, d, cosines + i);
    hn::StoreU(hn::Add(x, hn::Sub(hn::Mul(low, cosine), hn::Mul(x, hn::Mul(z, s)))), d, sines + i);
  }
}

// Sine and cosine of the whole angle, from those of the remainder: successive quarters give sine, cosine, −sine,
// −cosine.
HWY_INLINE void add_quarters(VI quarter, VD& sine, VD& cosine) {
  const DD d;
  const DI di;
  const auto is_odd = hn::RebindMask(d, hn::Ne(hn::And(quarter, hn::Set(di, 1)), hn::Zero(di)));
  const auto flip = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(quarter, hn::Set(di, 2))));
  const auto next = hn::Add(quarter, hn::Set(di, 1));
  const auto flip_next = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(next, hn::Set(di, 2))));
  const VD rest_sine = sine;
  sine = hn::Xor(hn::IfThenElse(is_odd, cosine, sine), flip);
  cosine = hn::Xor(hn::IfThenElse(is_odd, rest_sine, cosine), flip_next);
}

void in_double(ReducedAngles& angles, std::int64_t count) {
  find_radians(angles, count, angles.x.data(), angles.tail.data());
  find_waves(angles.x.data(), angles.tail.data(), count, angles.sine.data(), angles.cosine.data());
  const DD d;
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    VD sine = hn::LoadU(d, angles.sine.data() + i), cosine = hn::LoadU(d, angles.cosine.data() + i);
    add_quarters(hn::LoadU(DI(), angles.quarter.data() + i), sine, cosine);
    hn::StoreU(sine, d, angles.sine.data() + i);
    hn::StoreU(cosine, d, angles.cosine.data() + i);
  }
}

std::int64_t direct(ReducedAngles& angles, std::int64_t count, double scale, float* HWY_RESTRICT sines,
                    float* HWY_RESTRICT cosines, std::int32_t* HWY_RESTRICT doubtful) {
  find_radians(angles, count, angles.x.data(), angles.tail.data());
  find_waves(angles.x.data(), angles.tail.data(), count, angles.sine.data(), angles.cosine.data());

  const DD d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const hn::Rebind<float, DD> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  const std::int64_t* HWY_RESTRICT quarters = angles.quarter.data();
  const double *HWY_RESTRICT rest_sines = angles.sine.data(), *HWY_RESTRICT rest_cosines = angles.cosine.data();
  // The relative error is 2^-50 and a few roundings: if both ends of twice that interval round to the same float,
  // there is no doubt.
  const VD least = hn::Set(d, scale * (1 - 0x1p-49)), most = hn::Set(d, scale * (1 + 0x1p-49));
  std::int64_t doubts = 0;
  for (std::int64_t i = 0; i < count; i += lanes) {
    VD s = hn::LoadU(d, rest_sines + i), c = hn::LoadU(d, rest_cosines + i);
    add_quarters(hn::LoadU(DI(), quarters + i), s, c);
    const auto s_low = hn::DemoteTo(df, hn::Mul(s, least)), s_high = hn::DemoteTo(df, hn::Mul(s, most));
    const auto c_low = hn::DemoteTo(df, hn::Mul(c, least)), c_high = hn::DemoteTo(df, hn::Mul(c, most));
    hn::StoreU(s_low, df, sines + i);
    hn::StoreU(c_low, df, cosines + i);
    const auto differs = hn::Or(hn::Xor(hn::BitCast(du, s_low), hn::BitCast(du, s_high)),
                                hn::Xor(hn::BitCast(du, c_low), hn::BitCast(du, c_high)));
    if (HWY_LIKELY(hn::AllTrue(du, hn::Eq(differs, hn::Zero(du))))) continue;
    for (std::int64_t n = i; n < std::min(i + lanes, count); ++n) doubtful[doubts++] = static_cast<std::int32_t>(n);
  }
  return doubts;
}

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::kernels::cpu {

HWY_EXPORT(direct);
HWY_EXPORT(in_double);

void ReducedAngles::resize(std::size_t count) {
  if (rest.size() == count + kDirectPadding) return;
  for (auto* list : {&quarter, &rest, &radians}) list->assign(count + kDirectPadding, 0);
  below.assign(count + kDirectPadding, 0);
  for (auto* list : {&x, &tail, &sine, &cosine}) list->assign(count + kDirectPadding, 0);
}

void waves_in_double(ReducedAngles& angles, std::int64_t count) noexcept {
  HWY_DYNAMIC_DISPATCH(in_double)(angles, count);
}
std::int64_t direct_waves(ReducedAngles& angles, std::int64_t count, double scale, float* sines, float* cosines,
                          std::int32_t* doubtful) noexcept {
  return HWY_DYNAMIC_DISPATCH(direct)(angles, count, scale, sines, cosines, doubtful);
}

}  // namespace posenc::kernels::cpu
#endif
