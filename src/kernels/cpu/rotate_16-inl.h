// Groups of 16-bit pairs on arm64, in whole vectors of eight.

#if defined(POSENC_ROTATE_16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_ROTATE_16_INL_H
#undef POSENC_ROTATE_16_INL_H
#else
#define POSENC_ROTATE_16_INL_H
#endif

#include "kernels/cpu/here-inl.h"
#include "kernels/cpu/native_16-inl.h"
#include "kernels/cpu/rotate_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_NEON

// On arm64 every conversion to or from f16, and to bf16 if the processor has one, uses one pipe of four; the
// additions and shuffles below can use any.
template <class T> HWY_INLINE void widen(V16 bits, V32& low, V32& high) {
  if constexpr (!is_f16<T>()) {
    low = hn::BitCast(D32(), hn::InterleaveLower(D16(), hn::Zero(D16()), bits));
    high = hn::BitCast(D32(), hn::InterleaveUpper(D16(), hn::Zero(D16()), bits));
  } else {
    const hn::Half<D16> d16;
    const hn::Rebind<hwy::float16_t, D32> half;
    low = hn::PromoteTo(D32(), hn::BitCast(half, hn::LowerHalf(d16, bits)));
    high = hn::PromoteTo(D32(), hn::BitCast(half, hn::UpperHalf(d16, bits)));
  }
}

// Rounds to nearest. bf16: adds half a unit and drops the lower half, which is wrong only for a tie; the lower half
// is then 0, and `nearest` detects it. NaNs have a lower half of 0 here (tables and inputs ensure that), so nothing
// is carried into the sign.
template <class T> HWY_INLINE V16 narrow(V32 low, V32 high, V16& nearest) {
#if POSENC_NATIVE_16
  if constexpr (IsNative16<T>) return narrow_upper<T>(narrow_lower<T>(low), high);
#endif
  if constexpr (std::is_same_v<T, BFloat16>) {
    const hn::RebindToUnsigned<D32> du;
    const auto half = hn::Set(du, 0x8000);
    const auto a = hn::BitCast(D16(), hn::Add(hn::BitCast(du, low), half));
    const auto b = hn::BitCast(D16(), hn::Add(hn::BitCast(du, high), half));
    nearest = hn::Min(nearest, hn::ConcatEven(D16(), b, a));
    return hn::ConcatOdd(D16(), b, a);
  } else {
    const hn::Half<D16> d16;
    const hn::Rebind<hwy::float16_t, D32> half;
    return hn::Combine(D16(), hn::BitCast(d16, hn::DemoteTo(half, high)), hn::BitCast(d16, hn::DemoteTo(half, low)));
  }
}
template <class T> HWY_INLINE bool has_tie(V16 nearest) {
  return std::is_same_v<T, BFloat16> && !hn::AllFalse(D16(), hn::Eq(nearest, hn::Zero(D16())));
}
// The slow path, for ties.
HWY_INLINE void store_carefully(V32 low, V32 high, BFloat16* out) {
  store_as(D32(), low, out);
  store_as(D32(), high, out + hn::Lanes(D32()));
}
template <class T> HWY_INLINE void store_carefully(V32, V32, T*) {}

template <int kRows, class T> HWY_INLINE void rotate_group_16(T* out0, T* out1, std::int64_t out_step, const T* x0,
                                                              const T* x1, std::int64_t x_step, const float* c,
                                                              const float* s) {
  const D32 d;
  const V32 c0 = hn::LoadU(d, c), c1 = hn::LoadU(d, c + 4), c2 = hn::LoadU(d, c + 8), c3 = hn::LoadU(d, c + 12);
  const V32 s0 = hn::LoadU(d, s), s1 = hn::LoadU(d, s + 4), s2 = hn::LoadU(d, s + 8), s3 = hn::LoadU(d, s + 12);
  for (int row = 0; row < kRows; ++row, x0 += x_step, x1 += x_step, out0 += out_step, out1 += out_step) {
    V32 a0, a1, a2, a3, b0, b1, b2, b3;
    widen<T>(load_bits(x0), a0, a1);
    widen<T>(load_bits(x1), b0, b1);
    widen<T>(load_bits(x0 + 8), a2, a3);
    widen<T>(load_bits(x1 + 8), b2, b3);
    rotate_pair(a0, b0, c0, s0);
    rotate_pair(a1, b1, c1, s1);
    rotate_pair(a2, b2, c2, s2);
    rotate_pair(a3, b3, c3, s3);
    V16 nearest = hn::Set(D16(), 0xFFFF);
    const V16 first0 = narrow<T>(a0, a1, nearest), first1 = narrow<T>(a2, a3, nearest);
    const V16 second0 = narrow<T>(b0, b1, nearest), second1 = narrow<T>(b2, b3, nearest);
    if (HWY_UNLIKELY(has_tie<T>(nearest))) {
      store_carefully(a0, a1, out0);
      store_carefully(a2, a3, out0 + 8);
      store_carefully(b0, b1, out1);
      store_carefully(b2, b3, out1 + 8);
      continue;
    }
    store_bits(first0, out0);
    store_bits(first1, out0 + 8);
    store_bits(second0, out1);
    store_bits(second1, out1 + 8);
  }
}

// Half a group of alternating pairs.
template <int kRows, class T> HWY_INLINE void rotate_group_16_doubled(T* out, std::int64_t out_step, const T* x,
                                                                      std::int64_t x_step, const float* c,
                                                                      const float* s) {
  const D32 d;
  const V32 c0 = hn::LoadU(d, c), c1 = hn::LoadU(d, c + 4), c2 = hn::LoadU(d, c + 8), c3 = hn::LoadU(d, c + 12);
  const V32 s0 = hn::LoadU(d, s), s1 = hn::LoadU(d, s + 4), s2 = hn::LoadU(d, s + 8), s3 = hn::LoadU(d, s + 12);
  for (int row = 0; row < kRows; ++row, x += x_step, out += out_step) {
    V32 v0, v1, v2, v3;
    widen<T>(load_bits(x), v0, v1);
    widen<T>(load_bits(x + 8), v2, v3);
    v0 = rotated_doubled(d, v0, c0, s0);
    v1 = rotated_doubled(d, v1, c1, s1);
    v2 = rotated_doubled(d, v2, c2, s2);
    v3 = rotated_doubled(d, v3, c3, s3);
    V16 nearest = hn::Set(D16(), 0xFFFF);
    const V16 first = narrow<T>(v0, v1, nearest), second = narrow<T>(v2, v3, nearest);
    if (HWY_UNLIKELY(has_tie<T>(nearest))) {
      store_carefully(v0, v1, out);
      store_carefully(v2, v3, out + 8);
      continue;
    }
    store_bits(first, out);
    store_bits(second, out + 8);
  }
}

template <class T>
concept Is16Bits = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || IsNative16<T>;

template <int kRows, Is16Bits T> HWY_INLINE void rotate_group_halves(T* out0, T* out1, std::int64_t out_step,
                                                                     const T* x0, const T* x1, std::int64_t x_step,
                                                                     const float* c, const float* s) {
  rotate_group_16<kRows>(out0, out1, out_step, x0, x1, x_step, c, s);
}
template <int kRows, Is16Bits T> HWY_INLINE void rotate_group_doubled(T* out, std::int64_t out_step, const T* x,
                                                                      std::int64_t x_step, const float* c,
                                                                      const float* s) {
  rotate_group_16_doubled<kRows>(out, out_step, x, x_step, c, s);
  rotate_group_16_doubled<kRows>(out + 16, out_step, x + 16, x_step, c + 16, s + 16);
}

#if POSENC_NATIVE_16

// Eight pairs in float32: first and second elements, or alternating, a0 a1 b0 b1.
struct Eight {
  HWY_INLINE Eight() {}  // an implicit one would not be compiled for this target
  V32 a0, a1, b0, b1;
};

// Second elements are converted by multiplying with 1 and adding to −0, which is exact for f16; first elements by the
// plain conversion, so that all pipes are busy. −0 is loaded each time at no cost: the sum takes its register.
template <class T> HWY_INLINE V32 minus_zero() {
  if constexpr (!is_f16<T>()) return hn::Undefined(D32());
  alignas(16) static constexpr std::uint32_t kMinusZero[4] = {0x80000000, 0x80000000, 0x80000000, 0x80000000};
  float32x4_t zero;
  asm volatile("ldr %q0, %1" : "=w"(zero) : "m"(kMinusZero));
  return V32(zero);
}
template <class T> HWY_INLINE V32 second_lower(V16 bits, V32 zero, V16 one) {
  if constexpr (is_f16<T>()) return plus_lower<T>(zero, bits, one);
  return lower<T>(bits);
}
template <class T> HWY_INLINE V32 second_upper(V16 bits, V32 zero, V16 one) {
  if constexpr (is_f16<T>()) return plus_upper<T>(zero, bits, one);
  return upper<T>(bits);
}

// Three independent steps of a row at once: eight rotated pairs are rounded and written, the next eight are rotated,
// and the eight after that are read.
template <class T> HWY_INLINE void write_rotate_read(T* out0, T* out1, Eight& rotated, Eight& wide, V32 c0, V32 c1,
                                                     V32 s0, V32 s1, const T* x0, const T* x1, V16 one) {
  const V16 x = here(load_bits(x0)), y = here(load_bits(x1));
  const V32 zero0 = minus_zero<T>(), zero1 = minus_zero<T>();
  const V32 p0 = here(hn::Mul(wide.a0, c0));
  V16 second = narrow_lower<T>(rotated.b0);
  const V32 q1 = here(hn::Mul(wide.b1, s1)), q0 = here(hn::Mul(wide.b0, s0));
  const V32 v1 = here(hn::Mul(wide.a1, s1)), u1 = here(hn::Mul(wide.b1, c1));
  V16 first = narrow_lower<T>(rotated.a0);
  const V32 p1 = here(hn::Mul(wide.a1, c1));
  wide.b1 = second_upper<T>(y, zero1, one);
  const V32 u0 = here(hn::Mul(wide.b0, c0));
  wide.b0 = second_lower<T>(y, zero0, one);
  const V32 v0 = here(hn::Mul(wide.a0, s0));
  wide.a1 = upper<T>(x);
  rotated.a0 = here(hn::Sub(p0, q0));
  first = narrow_upper<T>(first, rotated.a1);
  rotated.a1 = here(hn::Sub(p1, q1));
  rotated.b0 = here(hn::Add(u0, v0));
  wide.a0 = lower<T>(x);
  second = narrow_upper<T>(second, rotated.b1);
  store_bits(second, out1);
  store_bits(first, out0);
  rotated.b1 = here(hn::Add(u1, v1));
}

// The same for alternating pairs, with each cosine and sine stored twice.
template <class T> HWY_INLINE void write_rotate_read_doubled(T* out, Eight& rotated, Eight& wide, const float* c,
                                                             const float* s, const T* x0, V16 one) {
  const D32 d;
  const V16 x = here(load_bits(x0)), y = here(load_bits(x0 + 8));
  const V32 zero0 = minus_zero<T>(), zero1 = minus_zero<T>();
  const V32 r0 = here(hn::Reverse2(d, wide.a0)), r1 = here(hn::Reverse2(d, wide.a1));
  const V32 p0 = here(hn::Mul(wide.a0, hn::LoadU(d, c)));
  V16 first = narrow_lower<T>(rotated.a0);
  const V32 r2 = here(hn::Reverse2(d, wide.b0)), r3 = here(hn::Reverse2(d, wide.b1));
  const V32 p1 = here(hn::Mul(wide.a1, hn::LoadU(d, c + 4)));
  const V32 q0 = here(hn::Mul(r0, hn::LoadU(d, s))), q1 = here(hn::Mul(r1, hn::LoadU(d, s + 4)));
  V16 second = narrow_lower<T>(rotated.b0);
  const V32 p3 = here(hn::Mul(wide.b1, hn::LoadU(d, c + 12)));
  wide.b1 = second_upper<T>(y, zero1, one);
  const V32 p2 = here(hn::Mul(wide.b0, hn::LoadU(d, c + 8)));
  wide.b0 = second_lower<T>(y, zero0, one);
  const V32 q2 = here(hn::Mul(r2, hn::LoadU(d, s + 8)));
  wide.a1 = upper<T>(x);
  rotated.a0 = here(hn::Add(p0, q0));
  first = narrow_upper<T>(first, rotated.a1);
  const V32 q3 = here(hn::Mul(r3, hn::LoadU(d, s + 12)));
  rotated.a1 = here(hn::Add(p1, q1));
  wide.a0 = lower<T>(x);
  second = narrow_upper<T>(second, rotated.b1);
  rotated.b0 = here(hn::Add(p2, q2));
  store_bits(first, out);
  store_bits(second, out + 8);
  rotated.b1 = here(hn::Add(p3, q3));
}

#endif  // POSENC_NATIVE_16

#endif  // HWY_TARGET == HWY_NEON

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
