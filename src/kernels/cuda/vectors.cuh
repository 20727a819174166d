#pragma once

// 16 bytes of a tensor as floats and back.

#include "kernels/cuda/elements.cuh"

namespace posenc::kernels::cuda {

__device__ __forceinline__ float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
__device__ __forceinline__ std::uint32_t as_bits(float value) { return std::bit_cast<std::uint32_t>(value); }

template <class T> struct Vector;
template <> struct Vector<float> {
  static constexpr int kCount = 4;
  static __device__ __forceinline__ void unpack(const Bytes16& v, float* f) {
    f[0] = as_float(v.x), f[1] = as_float(v.y), f[2] = as_float(v.z), f[3] = as_float(v.w);
  }
  static __device__ __forceinline__ Bytes16 pack(const float* f) {
    return {as_bits(f[0]), as_bits(f[1]), as_bits(f[2]), as_bits(f[3])};
  }
};
template <class T> struct Vector16 {
  static constexpr int kCount = 8;
  static __device__ __forceinline__ void unpack(const Bytes16& v, float* f) {
    const std::uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) T::unpack_two(words[i], f[2 * i], f[2 * i + 1]);
  }
  static __device__ __forceinline__ Bytes16 pack(const float* f) {
    return {T::pack_two(f[0], f[1]), T::pack_two(f[2], f[3]), T::pack_two(f[4], f[5]), T::pack_two(f[6], f[7])};
  }
};
template <> struct Vector<BFloat16> : Vector16<Vector<BFloat16>> {
  static __device__ __forceinline__ void unpack_two(std::uint32_t word, float& low, float& high) {
    low = as_float(word << 16), high = as_float(word & 0xFFFF0000u);
  }
  static __device__ __forceinline__ std::uint32_t pack_two(float low, float high) {
    std::uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  }
};
template <> struct Vector<Half> : Vector16<Vector<Half>> {
  static __device__ __forceinline__ void unpack_two(std::uint32_t word, float& low, float& high) {
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"
        : "=f"(low), "=f"(high)
        : "r"(word));
  }
  static __device__ __forceinline__ std::uint32_t pack_two(float low, float high) {
    std::uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  }
};

/// 0 · word + sum in each half: anything non-finite marks the sum.
template <class T> __device__ __forceinline__ std::uint32_t mark(std::uint32_t word, std::uint32_t sum) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(word), "r"(0u));
  } else if constexpr (std::is_same_v<T, Half>) {
    asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(word), "r"(0u));
  } else {
    asm("fma.rn.f32 %0, %1, %2, %0;" : "+r"(sum) : "r"(word), "r"(0u));
  }
  return sum;
}
template <class T> __device__ __forceinline__ std::uint32_t mark(const Bytes16& v, std::uint32_t sum) {
  return mark<T>(v.w, mark<T>(v.z, mark<T>(v.y, mark<T>(v.x, sum))));
}
/// Whether some value was not finite: one half of the sum, or all of it, is not ±0.
template <class T> __device__ __forceinline__ bool is_marked(std::uint32_t sum) {
  return (sum & (sizeof(T) == 2 ? 0x7FFF7FFFu : 0x7FFFFFFFu)) != 0;
}

/// A GPU's NaN, all ones, as a host's canonical one.
template <class T> __device__ __forceinline__ std::uint32_t plain_nan(std::uint32_t word) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return word == 0x7FFFFFFFu ? 0x7FC00000u : word;
  } else {
    constexpr std::uint32_t kPlain = std::is_same_v<T, Half> ? 0x7E00u : 0x7FC0u;
    const std::uint32_t low = (word & 0xFFFFu) == 0x7FFFu ? kPlain : word & 0xFFFFu;
    const std::uint32_t high = word >> 16 == 0x7FFFu ? kPlain : word >> 16;
    return high << 16 | low;
  }
}
template <class T> __device__ __noinline__ std::uint32_t plain_nan_slowly(std::uint32_t word) {
  return plain_nan<T>(word);
}
template <class T> __device__ __forceinline__ Bytes16 plain_nans(const Bytes16& v) {
  return {plain_nan_slowly<T>(v.x), plain_nan_slowly<T>(v.y), plain_nan_slowly<T>(v.z), plain_nan_slowly<T>(v.w)};
}

/// Two sums, one element at a time, if something is NaN and its bytes matter.
template <class T> __device__ __noinline__ std::uint32_t add_slowly(float x0, float p0, float x1, float p1) {
  const auto bits = [](float value) { return std::uint32_t{narrow<T>(widened(value)).bits}; };
  return bits(sum_of(x0, p0)) | bits(sum_of(x1, p1)) << 16;
}
template <class T> __device__ __forceinline__ Bytes16 sums_slowly(const float* x, const float* p) {
  if constexpr (sizeof(T) == sizeof(float)) {
    const float sums[4] = {sum_of(x[0], p[0]), sum_of(x[1], p[1]), sum_of(x[2], p[2]), sum_of(x[3], p[3])};
    return Vector<float>::pack(sums);
  } else {
    return {add_slowly<T>(x[0], p[0], x[1], p[1]), add_slowly<T>(x[2], p[2], x[3], p[3]),
            add_slowly<T>(x[4], p[4], x[5], p[5]), add_slowly<T>(x[6], p[6], x[7], p[7])};
  }
}

__device__ __forceinline__ Bytes16 load16(const void* at) { return *static_cast<const Bytes16*>(at); }
__device__ __forceinline__ void store16(void* at, const Bytes16& v) { *static_cast<Bytes16*>(at) = v; }
/// For tables that other blocks read too: data that is read once does not evict them from the cache.
__device__ __forceinline__ Bytes16 load16_once(const void* at) {
  Bytes16 v;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at)
               : "memory");
  return v;
}

}  // namespace posenc::kernels::cuda
