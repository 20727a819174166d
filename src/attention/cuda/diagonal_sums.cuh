#pragma once

// The gradient of a bias by distance, as attention_backward_sm90 sums it.

#include "attention/cuda/key_blocks.cuh"

namespace posenc::attend::cuda {
namespace {

__device__ __forceinline__ void add_eight(float (&sum)[8], const kernels::cuda::Bytes16& x) {
  sum[0] += unpack(x.x, false), sum[1] += unpack(x.x, true);
  sum[2] += unpack(x.y, false), sum[3] += unpack(x.y, true);
  sum[4] += unpack(x.z, false), sum[5] += unpack(x.z, true);
  sum[6] += unpack(x.w, false), sum[7] += unpack(x.w, true);
}

// For a bias by distance, the three other warps of the producer's group sum dS: along the diagonals in near tiles, and
// all of it in tiles far to the right. Far to the left nothing is summed: see table_gradient.
//
// Distance = shift + query in tile − key in block, where shift is a multiple of 8 plus `rest`. Task (c, r) reads, for
// every key with key % 8 = r, the 8 queries at distances 8 c − kBelow + rest − r … + 7: one load of 16 bytes, at the
// same place in the swizzle each time.
struct Diagonals {
  Shared& sm;
  const BackwardParams& p;
  const int me;     // of 96 threads
  int rest;         // of the sequence's origin, divided by 8
  const int least;  // the lowest distance that is summed: some query attends to it
  float right;      // this thread's part of the sum far to the right

  // The first task of a distance, and the end of its tasks: r up to 7 moves it to the next c.
  __device__ __forceinline__ int task_of(int distance) const { return (distance + kBelow - rest) / 8 * 8; }
  __device__ __forceinline__ int tasks_end(int distance) const { return task_of(distance) + 16; }

  // Adds a sum at one distance to a head's row of d_distances.
  __device__ __forceinline__ void add_to(float* to, int d, float sum) {
    const int right_end = larger_of(-p.band.right_tail, -kMostDistance);  // distances up to here are far to the right
    if (d <= right_end) {
      right += sum;
    } else {
      add_one(to + kMostDistance + d, sum);
    }
  }
  __device__ __forceinline__ void add_near(int buffer, int shift, float* to) {
    const int end = tasks_end(smaller_of(shift + kQueryTile, p.band.tail) - 1);
#pragma unroll 1
    for (int task = task_of(larger_of(shift - (kKeys - 1), least)) + me; task < end; task += 96) {
      const int r = task % 8, ahead = task / 8 - (shift - rest + kBelow) / 8;  // query / 8 − key / 8
      const int first = ahead < 0 ? -ahead : 0;
      const int last = smaller_of(kQueryTile / 8 - 1 - ahead, kKeys / 8 - 1);
      float sum[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] = kCopiesTable ? sm.part[task][j] : 0.0f;
#pragma unroll 1
      for (int a = first; a <= last; ++a) {
        add_eight(sum,
                  *reinterpret_cast<const kernels::cuda::Bytes16*>(&sm.ds[buffer][8 * a + r][((a + ahead) ^ r) * 8]));
      }
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        if constexpr (kCopiesTable) {
          sm.part[task][j] = sum[j];
        } else if (const int d = task - 2 * r + j + rest - kBelow; d >= least && d < p.band.tail) {
          add_to(to, d, sum[j]);
        }
      }
    }
  }
  __device__ __forceinline__ void add_right(int buffer) {
    float sum[8] = {};
#pragma unroll 1
    for (int n = me; n < kKeys * kQueryTile / 8; n += 96)
      add_eight(sum, *reinterpret_cast<const kernels::cuda::Bytes16*>(&sm.ds[buffer][n / 8][n % 8 * 8]));
#pragma unroll
    for (int j = 0; j < 8; ++j) right += sum[j];
  }
  __device__ __forceinline__ float at_distance(int d) const {
    float sum = 0;
    for (int r = 0; r < 8; ++r) {
      const int at = d + kBelow - rest + r;
      sum += sm.part[at / 8 * 8 + r][at % 8];
    }
    return sum;
  }
  // Adds what one head has summed to its row of d_distances.
  __device__ __forceinline__ void write(float* to) {
    if constexpr (kCopiesTable) {
      for (int d = least + me; d < p.band.tail; d += 96) add_to(to, d, at_distance(d));
    }
#pragma unroll
    for (int n = 16; n > 0; n /= 2) right += from_neighbour(right, n);
    if (me % 32 == 0) add_one(to, right);
    right = 0;
  }
  __device__ __forceinline__ void clear() {
    if constexpr (!kCopiesTable) return;
    const int end = tasks_end(p.band.tail - 1);
    for (int task = task_of(least) + me; task < end; task += 96)
      for (int j = 0; j < 8; ++j) sm.part[task][j] = 0;
  }
};
[[maybe_unused]] __device__ __forceinline__ void sum_diagonals(Shared& sm, std::uint32_t base,
                                                               const BackwardParams& p) {
  Diagonals sums{
      sm,  p, static_cast<int>(kernels::cuda::thread()) - 32, 0, larger_of(p.band.origin - p.band.most, 8 - kBelow),
      0.0f};
  std::uint32_t phase = 0;
  int buffer = 0;
  for (;; phase ^= 1) {
    barrier_wait(POSENC_AT(k_full, 0), phase);
    const int item = sm.item[0];
    if (item < 0) return;
    const Work w = kPacked ? sm.work[0] : decode(item, p);
    sums.rest = w.band.origin & 7;
    float* to = p.d_distances + w.key_head * (p.heads / p.key_heads) * (2 * kMostDistance);
#pragma unroll 1
    for (int n = p.heads / p.key_heads; n > 0; --n, to += 2 * kMostDistance) {
      if (p.d_distances != nullptr) sums.clear();
#pragma unroll 1
      for (int i = w.tiles.first; i <= w.tiles.last; ++i, buffer ^= 1) {
        // Once they have met, the consumers may finish the key block, and `work` be the next.
        const Band& band = kPacked ? sm.work[0].band : p.band;
        const int shift = i * kQueryTile + band.origin - w.block * kKeys;
        const Side side = kind_of<kKind, kBoth, kQueryTile, kKeys>(band, i * kQueryTile, w.block * kKeys).side;
        meet(1, kExchange);
        if (p.d_distances == nullptr) continue;
        if (side == Side::kNear) sums.add_near(buffer, shift, to);
        if (side == Side::kRight) sums.add_right(buffer);
      }
      meet(2, 96);
      if (p.d_distances != nullptr) sums.write(to);
      meet(2, 96);
    }
  }
}

}  // namespace
}  // namespace posenc::attend::cuda
