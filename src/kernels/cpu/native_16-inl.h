// Instructions for 16-bit types on arm64 that Highway 1.0.3 lacks, on whole vectors of eight.

#if defined(POSENC_NATIVE_16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_NATIVE_16_INL_H
#undef POSENC_NATIVE_16_INL_H
#else
#define POSENC_NATIVE_16_INL_H
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/cpu/here-inl.h"
#include "posenc/types.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// bf16 if an instruction rounds to it, and f16 if one multiplies it into float32.
struct NativeBFloat16 {
  using Plain = BFloat16;
  BFloat16 value;
};
struct NativeHalf {
  using Plain = Half;
  Half value;
};
template <class T>
concept IsNative16 = std::is_same_v<T, NativeBFloat16> || std::is_same_v<T, NativeHalf>;
template <class T> constexpr bool is_f16() { return std::is_same_v<T, Half> || std::is_same_v<T, NativeHalf>; }

// clang 14's assembler does not know the instructions; programs built with it do without.
#undef POSENC_NATIVE_16
#undef POSENC_NATIVE_16_ATTRIBUTE
#if HWY_TARGET == HWY_NEON && !defined(__clang__)
#define POSENC_NATIVE_16 1
// For a function that uses them: tells g++'s assembler.
#define POSENC_NATIVE_16_ATTRIBUTE [[gnu::target("arch=armv8.2-a+crypto+fp16fml+bf16")]]
#else
#define POSENC_NATIVE_16 0
#endif

#if HWY_TARGET == HWY_NEON

using D32 = hn::ScalableTag<float>;
using D16 = hn::ScalableTag<std::uint16_t>;
using V32 = hn::Vec<D32>;
using V16 = hn::Vec<D16>;

template <class T> HWY_INLINE V16 load_bits(const T* x) {
  return hn::LoadU(D16(), reinterpret_cast<const std::uint16_t*>(x));
}
template <class T> HWY_INLINE void store_bits(V16 bits, T* out) {
  hn::StoreU(bits, D16(), reinterpret_cast<std::uint16_t*>(out));
}

#endif

#if POSENC_NATIVE_16

// Rounds to the lower half of a vector, and then to the upper.
template <class T> HWY_INLINE V16 narrow_lower(V32 low) {
  uint16x8_t bits;
  if constexpr (is_f16<T>()) {
    asm volatile("fcvtn %0.4h, %1.4s" : "=w"(bits) : "w"(low.raw));
  } else {
    asm volatile(".arch_extension bf16\n\tbfcvtn %0.4h, %1.4s" : "=w"(bits) : "w"(low.raw));
  }
  return V16(bits);
}
template <class T> HWY_INLINE V16 narrow_upper(V16 bits, V32 high) {
  if constexpr (is_f16<T>()) {
    asm volatile("fcvtn2 %0.8h, %1.4s" : "+w"(bits.raw) : "w"(high.raw));
  } else {
    asm volatile(".arch_extension bf16\n\tbfcvtn2 %0.8h, %1.4s" : "+w"(bits.raw) : "w"(high.raw));
  }
  return bits;
}

// Four of eight elements in float32.
template <class T> HWY_INLINE V32 lower(V16 bits) {
  if constexpr (is_f16<T>()) return here(V32(vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(bits.raw)))));
  return here(V32(vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(bits.raw), 16))));
}
template <class T> HWY_INLINE V32 upper(V16 bits) {
  if constexpr (is_f16<T>()) return here(V32(vcvt_high_f32_f16(vreinterpretq_f16_u16(bits.raw))));
  return here(V32(vreinterpretq_f32_u32(vshll_high_n_u16(bits.raw, 16))));
}

// Four of eight elements added to float32, rounded once. f16 is multiplied by `one`, the f16 number 1, on the way:
// conversions to and from f16 share one pipe of four, while a product can use any.
HWY_INLINE V16 one_in_f16() { return hn::Set(D16(), 0x3C00); }
template <class T> HWY_INLINE V32 plus_lower(V32 sum, V16 bits, V16 one) {
  if constexpr (!is_f16<T>()) return here(hn::Add(sum, lower<T>(bits)));
  asm volatile("fmlal %0.4s, %1.4h, %2.4h" : "+w"(sum.raw) : "w"(bits.raw), "w"(one.raw));
  return sum;
}
template <class T> HWY_INLINE V32 plus_upper(V32 sum, V16 bits, V16 one) {
  if constexpr (!is_f16<T>()) return here(hn::Add(sum, upper<T>(bits)));
  asm volatile("fmlal2 %0.4s, %1.4h, %2.4h" : "+w"(sum.raw) : "w"(bits.raw), "w"(one.raw));
  return sum;
}

#endif  // POSENC_NATIVE_16

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
