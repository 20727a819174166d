#pragma once

// What the warps of rotate_vectors and append_vectors have in common: the cosines and sines of a token, computed by a
// warp into shared memory, and the rotation of two vectors of a head.

#include "kernels/cuda/rotations.cuh"
#include "kernels/cuda/vectors.cuh"

namespace posenc::kernels::cuda {

/// Half a vector of numbers: 4 or 2 of them, aligned.
template <int kCount> __device__ __forceinline__ void read_run(const float* from, float* to) {
  if constexpr (kCount == 8) {
    const Float4 four = *reinterpret_cast<const Float4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
    const Float2 two = *reinterpret_cast<const Float2*>(from);
    to[0] = two.x, to[1] = two.y;
  }
}

__device__ __forceinline__ void rotate_pair(float& a, float& b, float cosine, float sine) {
  const float ac = a * cosine, bs = b * sine, bc = b * cosine, as = a * sine;
  a = ac - bs;
  b = bc + as;
}

/// a and b are whole vectors of one head; c and s its pairs, the first half of them in a if pairs are adjacent.
template <int kCount, bool kInterleaved>
__device__ __forceinline__ void rotate(float* a, float* b, const float* c, const float* s) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if constexpr (kInterleaved) {
      if (i < kCount / 2) {
        rotate_pair(a[2 * i], a[2 * i + 1], c[i], s[i]);
      } else {
        rotate_pair(b[2 * i - kCount], b[2 * i - kCount + 1], c[i], s[i]);
      }
    } else {
      rotate_pair(a[i], b[i], c[i], s[i]);
    }
  }
}

/// Exact angles on one axis. One pair at a time: two at a time need so many registers that fewer warps fit, which is
/// slower.
__device__ __forceinline__ void make_exact(const RotateParams& p, std::int64_t position, float* cosines, float* sines,
                                           unsigned lane) {
  const unsigned quarter = p.sign < 0 ? 2 : 0;
#pragma unroll 1
  for (std::uint32_t i = lane; i < static_cast<std::uint32_t>(p.pairs); i += 32) {
    const QuickAngle quick = quick_angle<true>(p.waves, i, position);
    const QuickValue cosine = quick_value(quick, 1, p.waves.scale), sine = quick_value(quick, quarter, p.waves.scale);
    CosSin<float> value{cosine.value, sine.value};
    if (!(cosine.is_sure & sine.is_sure)) [[unlikely]]
      value = cos_sin_slowly(p, position, i);
    cosines[i] = value.cosine, sines[i] = value.sine;
  }
}

/// The same for at most 64 pairs, whose frequencies the lane has loaded: for few tokens, where only the time of a single
/// warp counts.
struct FewTops {
  FrequencyTop tops[2];
};
__device__ __forceinline__ FewTops load_few(const RotateParams& p, unsigned lane) {
  return {{p.waves.tops[lane < p.pairs ? lane : 0], p.waves.tops[lane + 32 < p.pairs ? lane + 32 : 0]}};
}
__device__ __forceinline__ void make_few(const RotateParams& p, const FewTops& few, std::int64_t position,
                                         float* cosines, float* sines, unsigned lane) {
  const unsigned quarter = p.sign < 0 ? 2 : 0;
  const auto pairs = static_cast<std::uint32_t>(p.pairs);
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const std::uint32_t i = lane + 32 * n;
    const QuickAngle quick = quick_angle(few.tops[n].high, few.tops[n].low, static_cast<std::uint64_t>(position));
    const QuickValue cosine = quick_value(quick, 1, p.waves.scale), sine = quick_value(quick, quarter, p.waves.scale);
    CosSin<float> value{cosine.value, sine.value};
    if (!(cosine.is_sure & sine.is_sure) && i < pairs) [[unlikely]]
      value = cos_sin_slowly(p, position, i);
    if (i < pairs) cosines[i] = value.cosine, sines[i] = value.sine;
  }
}

}  // namespace posenc::kernels::cuda
