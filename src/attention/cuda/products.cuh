#pragma once

// The matrix products of a warpgroup that gradients need: sum[64 × N] += A[64 × 16] B[16 × N] for N of 32, 64 and 128, with A
// and B in shared memory, each contiguous along the 16, or ("across", in PTX "transposed") along its other axis.

#include "attention/cuda/hopper.cuh"

namespace posenc::attend::cuda {

// clang-format off
#define POSENC_R16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define POSENC_NEW_8(a, i) \
  "=f"(a[i]), "=f"(a[i + 1]), "=f"(a[i + 2]), "=f"(a[i + 3]), "=f"(a[i + 4]), "=f"(a[i + 5]), "=f"(a[i + 6]), \
  "=f"(a[i + 7])
#define POSENC_OLD_16(x) POSENC_8(x, 0), POSENC_8(x, 8)
#define POSENC_OLD_32(x) POSENC_32(x, 0)
#define POSENC_OLD_64(x) POSENC_32(x, 0), POSENC_32(x, 32)
#define POSENC_NEW_16(x) POSENC_NEW_8(x, 0), POSENC_NEW_8(x, 8)
#define POSENC_NEW_32(x) POSENC_NEW_16(x), POSENC_NEW_8(x, 16), POSENC_NEW_8(x, 24)
#define POSENC_NEW_64(x) \
  POSENC_NEW_32(x), POSENC_NEW_8(x, 32), POSENC_NEW_8(x, 40), POSENC_NEW_8(x, 48), POSENC_NEW_8(x, 56)
#define POSENC_DESCRIPTORS \
  "{\n .reg .b64 a, b;\n mov.b64 a, {%[a], 0x40000040};\n mov.b64 b, {%[b], 0x40000040};\n"
#define POSENC_WGMMA(n) " wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." POSENC_TYPES

// For sums of `count` numbers in each thread. multiply_first ignores the old value, which the compiler then need not provide.
#define POSENC_PRODUCTS(n, count)                                                                                      \
  template <int kAcrossA, int kAcrossB>                                                                                \
  __device__ __forceinline__ void multiply(float (&sum)[count], std::uint32_t a, std::uint32_t b) {                    \
    asm volatile(POSENC_DESCRIPTORS POSENC_WGMMA(n) " {" POSENC_R##count "}, a, b, 1, 1, 1, %[ta], %[tb];\n}\n"        \
                 : POSENC_OLD_##count(sum)                                                                             \
                 : [a] "r"(a), [b] "r"(b), [ta] "n"(kAcrossA), [tb] "n"(kAcrossB));                                    \
  }                                                                                                                    \
  template <int kAcrossA, int kAcrossB>                                                                                \
  __device__ __forceinline__ void multiply_first(float (&sum)[count], std::uint32_t a, std::uint32_t b) {              \
    asm volatile(POSENC_DESCRIPTORS " .reg .pred no;\n setp.ne.b32 no, 0, 0;\n"                                                         \
                 POSENC_WGMMA(n) " {" POSENC_R##count "}, a, b, no, 1, 1, %[ta], %[tb];\n}\n"                          \
                 : POSENC_NEW_##count(sum)                                                                             \
                 : [a] "r"(a), [b] "r"(b), [ta] "n"(kAcrossA), [tb] "n"(kAcrossB));                                    \
  }
POSENC_PRODUCTS(32, 16)
POSENC_PRODUCTS(64, 32)
POSENC_PRODUCTS(128, 64)

/// sum[64 × 32] += A[64 × 16] B[16 × 32]; A in registers, B in shared memory, contiguous along the 32.
__device__ __forceinline__ void multiply_registers(float (&sum)[16], const std::uint32_t* a, std::uint32_t b) {
  asm volatile("{\n .reg .b64 b;\n mov.b64 b, {%20, 0x40000040};\n" POSENC_WGMMA(32)
               " {" POSENC_R16 "}, {%16, %17, %18, %19}, b, 1, 1, 1, 1;\n}\n"
               : POSENC_OLD_16(sum)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b));
}
// clang-format on

}  // namespace posenc::attend::cuda
