// f16 and bf16 to and from f32 lanes, for code that is compiled once per SIMD target. Every target gives the same
// bytes (except for the payload of a NaN, which stays a NaN). If the processor converts f16, it rounds as IEEE 754
// specifies; otherwise, and for bf16, the rounding is written in integers, because Highway 1.0.3 truncates.

#if defined(POSENC_CONVERT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_CONVERT_INL_H
#undef POSENC_CONVERT_INL_H
#else
#define POSENC_CONVERT_INL_H
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hwy/highway.h"
#include "posenc/types.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D> HWY_INLINE hn::Vec<D> load_as(D d, const float* from) { return hn::LoadU(d, from); }
template <class D> HWY_INLINE hn::Vec<D> load_as(D d, const double* from) { return hn::LoadU(d, from); }

template <class D> HWY_INLINE hn::Vec<D> load_as(D d, const BFloat16* from) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> d16;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
}

// Targets whose processor converts f16: those of arm64, and of x86 from AVX2 (F16C) on.
#undef POSENC_NATIVE_F16
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128 && \
    (HWY_ARCH_ARM_A64 || (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2))
#define POSENC_NATIVE_F16 1
#else
#define POSENC_NATIVE_F16 0
#endif

#if POSENC_NATIVE_F16
template <class D> HWY_INLINE hn::Vec<D> load_as(D d, const Half* from) {
  const hn::Rebind<hwy::float16_t, D> half;
  return hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(from)));
}
#else
template <class D> HWY_INLINE hn::Vec<D> load_as(D d, const Half* from) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> d16;
  const auto bits = hn::PromoteTo(du, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from)));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
  const auto size = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFF)));
  const auto normal = hn::Add(size, hn::Set(du, 112u << 23));
  const auto special = hn::Or(size, hn::Set(du, 0x7F800000));
  // A subnormal is its fraction added to 2^-14; subtracting 2^-14 leaves it, exactly.
  const auto base = hn::Set(du, 113u << 23);
  const auto small = hn::BitCast(du, hn::Sub(hn::BitCast(d, hn::Add(size, base)), hn::BitCast(d, base)));
  const auto is_special = hn::Gt(size, hn::Set(du, (0x7C00u << 13) - 1));
  const auto is_small = hn::Lt(size, hn::Set(du, 0x0400u << 13));
  const auto value = hn::IfThenElse(is_special, special, hn::IfThenElse(is_small, small, normal));
  return hn::BitCast(d, hn::Or(sign, value));
}

#endif

// e4m3 is an f16 without its lowest seven bits, and with another bias of the exponent; its NaN is not one there.
#if POSENC_NATIVE_F16
template <class D> HWY_INLINE hn::Vec<D> load_as(D d, const E4M3* from) {
  const hn::Rebind<hwy::float16_t, D> half;
  const hn::Rebind<std::uint8_t, D> d8;
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::Rebind<std::int16_t, D> di16;
  const auto bits = hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(from)));
  const auto with_sign_twice = hn::BitCast(d16, hn::ShiftRight<1>(hn::BitCast(di16, hn::ShiftLeft<8>(bits))));
  const auto is_nan = hn::Eq(hn::Or(bits, hn::Set(d16, 0x80)), hn::Set(d16, 0xFF));
  const auto value = hn::Or(hn::And(with_sign_twice, hn::Set(d16, 0xBFFF)), hn::VecFromMask(d16, is_nan));
  return hn::Mul(hn::PromoteTo(d, hn::BitCast(half, value)), hn::Set(d, 256.0f));
}
#else
template <class D> HWY_INLINE hn::Vec<D> load_as(D d, const E4M3* from) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint8_t, D> d8;
  const auto bits = hn::PromoteTo(du, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(from)));
  const auto sign = hn::ShiftLeft<24>(hn::And(bits, hn::Set(du, 0x80)));
  const auto size = hn::ShiftLeft<20>(hn::And(bits, hn::Set(du, 0x7F)));
  const auto normal = hn::Add(size, hn::Set(du, 120u << 23));
  // A subnormal is its fraction added to 2^-6; subtracting 2^-6 leaves it, exactly.
  const auto base = hn::Set(du, 121u << 23);
  const auto small = hn::BitCast(du, hn::Sub(hn::BitCast(d, hn::Add(size, base)), hn::BitCast(d, base)));
  const auto is_small = hn::Lt(size, hn::Set(du, 1u << 23));
  const auto is_nan = hn::Eq(size, hn::Set(du, 0x7Fu << 20));
  const auto value = hn::IfThenElse(is_nan, hn::Set(du, 0x7FC00000), hn::IfThenElse(is_small, small, normal));
  return hn::BitCast(d, hn::Or(sign, value));
}
#endif

template <class D> HWY_INLINE void store_as(D d, hn::Vec<D> value, float* to) { hn::StoreU(value, d, to); }
template <class D> HWY_INLINE void store_as(D d, hn::Vec<D> value, double* to) { hn::StoreU(value, d, to); }

// Rounded to bf16, in the lower half of each lane.
template <class D> HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> to_bf16_lanes(D /*d*/, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF)));  // to nearest, ties to even, then truncated
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));                 // a NaN must not round to infinity
  const auto is_number = hn::RebindMask(du, hn::Eq(value, value));
  return hn::ShiftRight<16>(hn::IfThenElse(is_number, rounded, quiet));
}

template <class D> HWY_INLINE void store_as(D d, hn::Vec<D> value, BFloat16* to) {
  const hn::Rebind<std::uint16_t, D> d16;
  hn::StoreU(hn::TruncateTo(d16, to_bf16_lanes(d, value)), d16, reinterpret_cast<std::uint16_t*>(to));
}

// bf16 by AVX-512's own rounding instruction, VCVTNEPS2BF16: a quarter of the instructions. It treats numbers below
// 2^-126 as 0, so vectors with such a number are rounded as on other targets.
#undef POSENC_ROUNDS_BF16
#if HWY_TARGET == HWY_AVX3 && defined(__linux__) && !defined(__clang__)
#define POSENC_ROUNDS_BF16 1
struct RoundedBFloat16 {
  BFloat16 value;
};
template <class D> HWY_INLINE hn::Vec<D> load_as(D d, const RoundedBFloat16* from) {
  return load_as(d, &from->value);
}
template <class D> HWY_INLINE void store_as(D d, hn::Vec<D> value, RoundedBFloat16* to) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    constexpr int kSubnormal = 0x20;
    if (HWY_LIKELY(_mm512_fpclass_ps_mask(value.raw, kSubnormal) == 0)) {
      __m256i rounded;
      asm("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(value.raw));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), rounded);
      return;
    }
  }
  store_as(d, value, &to->value);
}
#else
#define POSENC_ROUNDS_BF16 0
#endif

#if POSENC_NATIVE_F16
// Rounded into a register: on x86 the instruction that rounds into memory takes up to twice as long as two.
template <class D> HWY_INLINE void store_as(D /*d*/, hn::Vec<D> value, Half* to) {
  const hn::Rebind<hwy::float16_t, D> half;
  auto rounded = hn::DemoteTo(half, value);
#if HWY_ARCH_X86
  asm("" : "+x"(rounded.raw));
#endif
  hn::StoreU(rounded, half, reinterpret_cast<hwy::float16_t*>(to));
}
#else
template <class D> HWY_INLINE hn::Vec<hn::RebindToUnsigned<D>> to_f16_lanes(D d, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000));
  const auto size = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
  const auto odd = hn::And(hn::ShiftRight<13>(size), hn::Set(du, 1));
  const auto rebased = hn::Sub(hn::Add(size, hn::Add(odd, hn::Set(du, 0xFFF))), hn::Set(du, 112u << 23));
  const auto normal = hn::Min(hn::ShiftRight<13>(rebased), hn::Set(du, 0x7C00));
  // Below 2^-14 the last bit is worth 2^-24, which is the last bit of a float at 1/2: adding 1/2 rounds there.
  const auto half = hn::Set(d, 0.5f);
  const auto small = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, size), half)), hn::BitCast(du, half));
  const auto is_small = hn::Lt(size, hn::Set(du, 0x38800000));
  const auto is_nan = hn::Gt(size, hn::Set(du, 0x7F800000));
  const auto finite = hn::IfThenElse(is_small, small, normal);
  return hn::Or(sign, hn::IfThenElse(is_nan, hn::Set(du, 0x7E00), finite));
}

template <class D> HWY_INLINE void store_as(D d, hn::Vec<D> value, Half* to) {
  const hn::Rebind<std::uint16_t, D> d16;
  hn::StoreU(hn::TruncateTo(d16, to_f16_lanes(d, value)), d16, reinterpret_cast<std::uint16_t*>(to));
}
#endif

template <class D> HWY_INLINE void store_as(D d, hn::Vec<D> value, E4M3* to) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint8_t, D> d8;
  const auto bits = hn::BitCast(du, value);
  const auto sign = hn::And(hn::ShiftRight<24>(bits), hn::Set(du, 0x80));
  const auto size = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
  const auto odd = hn::And(hn::ShiftRight<20>(size), hn::Set(du, 1));
  const auto rebased = hn::Sub(hn::Add(size, hn::Add(odd, hn::Set(du, 0x7FFFF))), hn::Set(du, 120u << 23));
  const auto normal = hn::Min(hn::ShiftRight<20>(rebased), hn::Set(du, 0x7E));
  // Below 2^-6 the last bit is worth 2^-9, which is the last bit of a float at 2^14: adding 2^14 rounds there.
  const auto large = hn::Set(d, 0x1p14f);
  const auto small = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, size), large)), hn::BitCast(du, large));
  const auto is_small = hn::Lt(size, hn::Set(du, 121u << 23));
  const auto is_nan = hn::Gt(size, hn::Set(du, 0x7F800000));
  const auto number = hn::IfThenElse(is_small, small, normal);
  const auto all = hn::Or(sign, hn::IfThenElse(is_nan, hn::Set(du, 0x7F), number));
  hn::StoreU(hn::TruncateTo(d8, all), d8, reinterpret_cast<std::uint8_t*>(to));
}

// 32-bit lanes at an address aligned only for 16-bit elements.
#if HWY_TARGET == HWY_SCALAR
template <class D> HWY_INLINE hn::Vec<D> load_words(D d, const BFloat16* from) {
  hn::TFromD<D> word;
  std::memcpy(&word, from, sizeof word);
  return hn::Set(d, word);
}
template <class D> HWY_INLINE void store_words(D, hn::Vec<D> words, BFloat16* to) {
  const auto word = hn::GetLane(words);
  std::memcpy(static_cast<void*>(to), &word, sizeof word);  // two elements at once
}
#else
template <class D> HWY_INLINE hn::Vec<D> load_words(D d, const BFloat16* from) {
  const hn::Repartition<std::uint16_t, D> d16;
  return hn::BitCast(d, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from)));
}
template <class D> HWY_INLINE void store_words(D, hn::Vec<D> words, BFloat16* to) {
  const hn::Repartition<std::uint16_t, D> d16;
  hn::StoreU(hn::BitCast(d16, words), d16, reinterpret_cast<std::uint16_t*>(to));
}
#endif

// Alternating elements, a b a b: one vector of each.

template <class D, class T> HWY_INLINE void load_alternating(D d, const T* from, hn::Vec<D>& a, hn::Vec<D>& b) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    hn::LoadInterleaved2(d, from, a, b);
  } else if constexpr (std::is_same_v<T, BFloat16>) {  // two fill a lane of 32 bits: b above a
    const hn::RebindToUnsigned<D> du;
    const auto both = load_words(du, from);
    a = hn::BitCast(d, hn::ShiftLeft<16>(both));
    b = hn::BitCast(d, hn::And(both, hn::Set(du, 0xFFFF0000u)));
  } else {
    HWY_ALIGN T split[2][hn::MaxLanes(d)];
    const hn::Rebind<std::uint16_t, D> d16;
    hn::Vec<decltype(d16)> a16, b16;
    hn::LoadInterleaved2(d16, reinterpret_cast<const std::uint16_t*>(from), a16, b16);
    hn::StoreU(a16, d16, reinterpret_cast<std::uint16_t*>(split[0]));
    hn::StoreU(b16, d16, reinterpret_cast<std::uint16_t*>(split[1]));
    a = load_as(d, split[0]);
    b = load_as(d, split[1]);
  }
}

template <class D, class T> HWY_INLINE void store_alternating(D d, hn::Vec<D> a, hn::Vec<D> b, T* to) {
  if constexpr (std::is_same_v<T, hn::TFromD<D>>) {
    hn::StoreInterleaved2(a, b, d, to);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    const hn::RebindToUnsigned<D> du;
    const auto both = hn::Or(to_bf16_lanes(d, a), hn::ShiftLeft<16>(to_bf16_lanes(d, b)));
    store_words(du, both, to);
  } else {
    HWY_ALIGN T split[2][hn::MaxLanes(d)];
    store_as(d, a, split[0]);
    store_as(d, b, split[1]);
    const hn::Rebind<std::uint16_t, D> d16;
    hn::StoreInterleaved2(hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(split[0])),
                          hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(split[1])), d16,
                          reinterpret_cast<std::uint16_t*>(to));
  }
}

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
