// tanh for the softcap, for code that is compiled once per SIMD target.

#if defined(POSENC_TANH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_TANH_INL_H
#undef POSENC_TANH_INL_H
#else
#define POSENC_TANH_INL_H
#endif

#include "attention/cpu/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// tanh x in f32. Maximum error: 4 ulp. Below 0.625 an odd polynomial (relative error below 1e-7; the coefficients of
// Cephes' tanhf), above it (1 − t) / (1 + t) with t = e^(−2|x|) ≤ 0.29, where nothing cancels. ±inf gives ±1, NaN
// gives NaN.
template <class D> HWY_INLINE hn::Vec<D> tanh_of(D d, hn::Vec<D> x) {
  const auto size = hn::Abs(x), one = hn::Set(d, 1.0f);
  const auto z = hn::Mul(x, x);
  auto p = hn::MulAdd(hn::Set(d, -5.70498872745e-3f), z, hn::Set(d, 2.06390887954e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, -5.37397155531e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, 1.33314422036e-1f));
  p = hn::MulAdd(p, z, hn::Set(d, -3.33332819422e-1f));
  const auto small = hn::MulAdd(hn::Mul(p, z), x, x);
  const auto t = exp2_of_negative(d, hn::Mul(size, hn::Set(d, -2.8853900817779268f)));  // −2 log2 e
  const auto large = hn::CopySign(hn::Div(hn::Sub(one, t), hn::Add(one, t)), x);
  return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.625f)), small, large);
}

// cap · tanh(score / cap), with the score and the cap in units of log 2.
template <class D> HWY_INLINE hn::Vec<D> cap_of(D d, hn::Vec<D> score, float cap) {
  return hn::Mul(hn::Set(d, cap), tanh_of(d, hn::Mul(score, hn::Set(d, 1.0f / cap))));
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
