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

// (2^|y| − 1) / (2^|y| + 1) with the sign of y: tanh (y · log 2 / 2). Why it is precise: n is the integer nearest to |y| and
// f = |y| − n is exact; 2^f − 1 = f · r(f) with a polynomial r within 1.1e-8 of its value, also where f is small; and
// 2^|y| − 1 = 2^n · (f · r) + (2^n − 1), where at most a bit cancels. Never more than 1. ±inf gives ±1, NaN gives NaN.
template <class D> HWY_INLINE hn::Vec<D> tanh_of_powers(D d, hn::Vec<D> y) {
  const hn::RebindToUnsigned<D> du;
  const auto one = hn::Set(d, 1.0f), most = hn::Set(d, 64.0f);  // 2^64 + 1 rounds to 2^64
  auto size = hn::Abs(y);
  size = hn::IfThenElse(hn::Gt(size, most), most, size);
  const auto magic = hn::Set(d, 12582912.0f + 127.0f);  // as in exp2_of_negative
  const auto shifted = hn::Add(size, magic);
  const auto f = hn::Sub(size, hn::Sub(shifted, magic));
  auto r = hn::MulAdd(hn::Set(d, 1.54035026713e-4f), f, hn::Set(d, 1.33907354404e-3f));
  r = hn::MulAdd(r, f, hn::Set(d, 9.61823752518e-3f));
  r = hn::MulAdd(r, f, hn::Set(d, 5.55035743373e-2f));
  r = hn::MulAdd(r, f, hn::Set(d, 2.40226497948e-1f));
  r = hn::MulAdd(r, f, hn::Set(d, 6.93147187927e-1f));
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted)));
  const auto less = hn::MulAdd(power, hn::Mul(f, r), hn::Sub(power, one));
  return hn::CopySign(hn::Div(less, hn::Add(less, hn::Set(d, 2.0f))), y);
}

// tanh x in f32. Maximum error: 4 ulp.
template <class D> HWY_INLINE hn::Vec<D> tanh_of(D d, hn::Vec<D> x) {
  return tanh_of_powers(d, hn::Mul(x, hn::Set(d, 2.8853900817779268f)));  // 2 log2 e
}

// cap · tanh(score / cap), with the score and the cap in units of log 2. Maximum error: 5 ulp, of which the product with the
// rounded 2 log2 e / cap has one. Never more than the cap.
template <class D> HWY_INLINE hn::Vec<D> cap_of(D d, hn::Vec<D> score, float cap) {
  return hn::Mul(hn::Set(d, cap), tanh_of_powers(d, hn::Mul(score, hn::Set(d, 2.8853900817779268f / cap))));
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
