#pragma once

// The instructions of compute capability 9.0 that attention uses, one function each. Shared memory is addressed by
// 32-bit numbers throughout: the operands of tensor cores and copy engine must be in uniform registers, and 64-bit
// pointer arithmetic keeps the assembler from seeing that they can be.

#include "kernels/cuda/device.cuh"

namespace posenc::attend::cuda {

struct alignas(64) TensorMap {
  std::uint64_t opaque[16];
};

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(
      reinterpret_cast<std::uintptr_t>((__attribute__((address_space(3))) const void*)p));
}
__device__ __forceinline__ int from_lane(int value, int lane) {
  return __nvvm_shfl_sync_idx_i32(~0u, value, lane, 31);
}
__device__ __forceinline__ float from_neighbour(float value, int lanes) {
  return __nvvm_shfl_sync_bfly_f32(~0u, value, lanes, 31);
}
__device__ __forceinline__ bool any_lane(bool vote) { return __nvvm_vote_any_sync(~0u, vote); }
__device__ __forceinline__ float larger(float a, float b) { return __builtin_fmaxf(a, b); }
__device__ __forceinline__ float smaller(float a, float b) { return __builtin_fminf(a, b); }

// --- barriers in shared memory

__device__ __forceinline__ void barrier_init(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
__device__ __forceinline__ void barrier_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      " @done bra.uni out;\n bra.uni again;\n out:\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// --- copies

/// A tile of rows of one head; the map describes the tensor as [batch, heads, panels, tokens, 64].
__device__ __forceinline__ void copy_tile(std::uint32_t to, const TensorMap* map, std::uint32_t barrier, int row,
                                          int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, "
      "%7}], [%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(0), "r"(row), "r"(0), "r"(head), "r"(batch)
      : "memory");
}
__device__ __forceinline__ void copy_bytes(std::uint32_t to, const void* from, std::uint32_t bytes,
                                           std::uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

/// Waits until the given number of threads of the block have arrived at barrier `id`.
__device__ __forceinline__ void meet(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// Makes this thread's writes to shared memory visible to the matrix products that follow a barrier.
__device__ __forceinline__ void show_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// Four 8 × 8 matrices of 16 bits; each lane gives the address of one row.
__device__ __forceinline__ void store_matrices(std::uint32_t address, const std::uint32_t* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}
/// Adds to global memory without waiting.
__device__ __forceinline__ void add_four(float* to, float a, float b, float c, float d) {
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
__device__ __forceinline__ void add_one(float* to, float a) {
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(to), "f"(a) : "memory");
}
__device__ __forceinline__ kernels::cuda::Float2 load_pair(std::uint32_t address) {
  kernels::cuda::Float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "r"(address));
  return pair;
}

__device__ __forceinline__ void load_four(std::uint32_t address, std::uint32_t* r) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void load_four(std::uint32_t address, float* r) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void store_four(std::uint32_t address, const std::uint32_t* r) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

// --- matrix products of a warpgroup

/// Shared-memory matrix descriptor, 128-byte swizzle: address and leading offset in units of 16 bytes. Only this low
/// word varies; the high one holds the swizzle (1 in bits 62-63) and the stride of 1024 bytes.
__device__ __forceinline__ std::uint32_t descriptor(std::uint32_t address, std::uint32_t leading) {
  return (address & 0x3FFFF) >> 4 | (leading >> 4) << 16;
}
__device__ __forceinline__ void products_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kPending> __device__ __forceinline__ void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
/// Keeps the compiler from moving uses of accumulators across a wait.
template <int kCount> __device__ __forceinline__ void pin(float (&r)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(r[i])::"memory");
}

/// Hides where a number comes from, a loop counter or an address, so that the compiler computes what follows from it anew
/// in every round of a loop, instead of keeping each such number in a register from round to round: there are none left.
template <class Word> __device__ __forceinline__ void hide(Word& word) { asm volatile("" : "+r"(word)); }

/// Keeps a number that is the same in all lanes out of the uniform registers: as far as the assembler knows, lanes
/// differ. `count` is 1 or more.
__device__ __forceinline__ float for_each_lane(float same, int lane, int count) {
  return lane < 31 + count ? same : 0.0f;
}

#if POSENC_F16
#define POSENC_TYPES "f16.f16"
#else
#define POSENC_TYPES "bf16.bf16"
#endif
// clang-format off
#define POSENC_8(a, i) \
  "+f"(a[i]), "+f"(a[i + 1]), "+f"(a[i + 2]), "+f"(a[i + 3]), "+f"(a[i + 4]), "+f"(a[i + 5]), "+f"(a[i + 6]), \
  "+f"(a[i + 7])
#define POSENC_32(a, i) POSENC_8(a, i), POSENC_8(a, i + 8), POSENC_8(a, i + 16), POSENC_8(a, i + 24)
#define POSENC_R32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, " \
  "%25, %26, %27, %28, %29, %30, %31"
#define POSENC_R64 \
  POSENC_R32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
  "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/// sum[64 × 128] = (keep ? sum : 0) + A[64 × 16] B[16 × 128]; A and B in shared memory, both contiguous along the 16.
__device__ __forceinline__ void multiply_shared(float (&sum)[64], std::uint32_t a, std::uint32_t b, int keep) {
  asm volatile(
      "{\n .reg .pred p;\n .reg .b64 a, b;\n mov.b64 a, {%64, 0x40000040};\n mov.b64 b, {%65, 0x40000040};\n"
      " setp.ne.b32 p, %66, 0;\n"
      " wgmma.mma_async.sync.aligned.m64n128k16.f32." POSENC_TYPES " {" POSENC_R64 "}, a, b, p, 1, 1, 0, 0;\n}\n"
      : POSENC_32(sum, 0), POSENC_32(sum, 32)
      : "r"(a), "r"(b), "r"(keep));
}
/// sum[64 × 64] = (keep ? sum : 0) + A[64 × 16] B[16 × 64], as above.
__device__ __forceinline__ void multiply_shared(float (&sum)[32], std::uint32_t a, std::uint32_t b, int keep) {
  asm volatile(
      "{\n .reg .pred p;\n .reg .b64 a, b;\n mov.b64 a, {%32, 0x40000040};\n mov.b64 b, {%33, 0x40000040};\n"
      " setp.ne.b32 p, %34, 0;\n"
      " wgmma.mma_async.sync.aligned.m64n64k16.f32." POSENC_TYPES " {" POSENC_R32 "}, a, b, p, 1, 1, 0, 0;\n}\n"
      : POSENC_32(sum, 0)
      : "r"(a), "r"(b), "r"(keep));
}
/// sum[64 × N] += A[64 × 16] B[16 × N]; A in registers, B in shared memory; kAcross: contiguous along N ("transposed"), else along
/// the 16.
template <int kAcross = 1>
__device__ __forceinline__ void multiply_registers(float (&sum)[64], const std::uint32_t* a, std::uint32_t b) {
  asm volatile(
      "{\n .reg .b64 b;\n mov.b64 b, {%68, 0x40000040};\n"
      " wgmma.mma_async.sync.aligned.m64n128k16.f32." POSENC_TYPES " {" POSENC_R64 "}, {%64, %65, %66, %67}, b, 1, 1, "
      "1, %69;\n}\n"
      : POSENC_32(sum, 0), POSENC_32(sum, 32)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(kAcross));
}
template <int kAcross = 1>
__device__ __forceinline__ void multiply_registers(float (&sum)[32], const std::uint32_t* a, std::uint32_t b) {
  asm volatile(
      "{\n .reg .b64 b;\n mov.b64 b, {%36, 0x40000040};\n"
      " wgmma.mma_async.sync.aligned.m64n64k16.f32." POSENC_TYPES " {" POSENC_R32 "}, {%32, %33, %34, %35}, b, 1, 1, "
      "1, %37;\n}\n"
      : POSENC_32(sum, 0)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "n"(kAcross));
}
// clang-format on

// --- numbers

__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float log_of_two(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("div.approx.f32 %0, %1, %2;" : "=f"(y) : "f"(1.0f), "f"(x));
  return y;
}
/// Two floats as two 16-bit numbers, `low` in the lower half.
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  std::uint32_t word;
#if POSENC_F16
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
#else
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
#endif
  return word;
}

/// The number in the lower or upper half of a word.
__device__ __forceinline__ float unpack(std::uint32_t word, bool upper) {
#if POSENC_F16
  float value;
  asm("{\n .reg .b16 h;\n cvt.u16.u32 h, %1;\n cvt.f32.f16 %0, h;\n}\n"
      : "=f"(value)
      : "r"(upper ? word >> 16 : word));
  return value;
#else
  return std::bit_cast<float>(upper ? word & 0xFFFF0000u : word << 16);
#endif
}
/// A float rounded to 16 bits.
__device__ __forceinline__ float rounded(float x) { return unpack(pack(x, 0), false); }

}  // namespace posenc::attend::cuda
