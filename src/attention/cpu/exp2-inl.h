// 2^x for softmax, for code that is compiled once per SIMD target.

#if defined(POSENC_EXP2_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_EXP2_INL_H
#undef POSENC_EXP2_INL_H
#else
#define POSENC_EXP2_INL_H
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 2^x for x ≤ 0, in f32. Max error: 1 ulp (tests/attention/exp2_test.cpp: 0.87 found; the argument: |x − n| ≤ 1/2 is
// exact; the polynomial is within 2.6e-9 of 2^f, 0.04 ulp; its last step rounds once, to 1 + small, and the steps
// before contribute less than 0.35 ulp because |f · p| < 0.42; the product with 2^n is exact). 2^0 = 1.
// Below 2^-126 the result is 0, also for −inf; NaN gives NaN.
template <class D> HWY_INLINE hn::Vec<D> exp2_of_negative(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> du;
  // x86's max gives the second operand where one is NaN
  x = hn::Max(hn::Set(d, -127.0f), x);
  // Adding 1.5 · 2^23 leaves the nearest integer n in the low bits; with 127 more, they are the exponent field of
  // 2^n.
  const auto magic = hn::Set(d, 12582912.0f + 127.0f);
  const auto shifted = hn::Add(x, magic);
  const auto f = hn::Sub(x, hn::Sub(shifted, magic));
  auto p = hn::MulAdd(hn::Set(d, 1.55946781613e-4f), f, hn::Set(d, 1.34066439024e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 9.61769297299e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.55031055101e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.240226527829f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.693147214968f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  // A NaN's bits shift to 0 or −0 and its polynomial is NaN: the product stays NaN.
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted))));
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
