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

/// The same one element at a time, where something is not a number and the bytes of it matter.
template <class T> __device__ __noinline__ std::uint32_t pack_slowly(float low, float high) {
  const auto bits = [](float value) { return std::uint32_t{narrow<T>(widened(value)).bits}; };
  return bits(low) | bits(high) << 16;
}
template <class T> __device__ __forceinline__ Bytes16 pack_any(const float* f) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return Vector<float>::pack(f);
  } else {
    return {pack_slowly<T>(f[0], f[1]), pack_slowly<T>(f[2], f[3]), pack_slowly<T>(f[4], f[5]),
            pack_slowly<T>(f[6], f[7])};
  }
}

/// 0, or not a number where one of the values is not finite.
template <int kCount> __device__ __forceinline__ float trouble(const float* f) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum = __builtin_fmaf(f[i], 0.0f, sum);
  return sum;
}

__device__ __forceinline__ Bytes16 load16(const void* at) { return *static_cast<const Bytes16*>(at); }
__device__ __forceinline__ void store16(void* at, const Bytes16& v) { *static_cast<Bytes16*>(at) = v; }
/// For tables that other blocks read too: what passes once does not push them out of the cache.
__device__ __forceinline__ Bytes16 load16_once(const void* at) {
  Bytes16 v;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at)
               : "memory");
  return v;
}

}  // namespace posenc::kernels::cuda
