// The matrix unit of arm64 processors: BFMMLA multiplies two rows of four bf16 by two columns of four, into four f32.
// Tiles have 8 rows and 12 columns because 24 vectors of sums then fit in registers beside 4 of the left operand, and
// 10 loads feed 24 instructions. Measured: decision 0022.

#ifndef POSENC_BFMMLA_INL_H  // compiled for a single SIMD target
#define POSENC_BFMMLA_INL_H

#include <algorithm>

#include "attention/cpu/products/bfmmla_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

// out[m, :] = (kAdd ? out[m, :] : 0) + Σ_terms Σ_k left[k, m] · right[k, :]   for m < 8 and a panel's columns
template <bool kAdd>
HWY_NOINLINE void multiply_16(const Term16* terms, std::int64_t count, std::int64_t depth, float* HWY_RESTRICT out) {
  float32x4_t sums[4][6];  // [pair of rows][pair of columns]: the four products of each
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
#pragma GCC unroll 6
    for (int c = 0; c < 6; ++c) sums[r][c] = vdupq_n_f32(0);
  }
  for (std::int64_t term = 0; term < count; ++term) {
    const std::uint16_t *left = terms[term].left, *right = terms[term].right;
    const std::int64_t own = terms[term].depth > 0 ? terms[term].depth : depth;
    for (std::int64_t k = 0; k < own; k += BfmmlaUnit::kPair, left += 32, right += 48) {
      const uint16x8_t l0 = vld1q_u16(left), l1 = vld1q_u16(left + 8), l2 = vld1q_u16(left + 16),
                       l3 = vld1q_u16(left + 24);
#pragma GCC unroll 6
      for (int c = 0; c < 6; ++c) {
        const uint16x8_t columns = vld1q_u16(right + 8 * c);
        multiply_2x4x2(sums[0][c], l0, columns);
        multiply_2x4x2(sums[1][c], l1, columns);
        multiply_2x4x2(sums[2][c], l2, columns);
        multiply_2x4x2(sums[3][c], l3, columns);
      }
    }
  }
  const auto finish = [&](float32x4_t sum, float* to)
                          HWY_ATTR { vst1q_f32(to, kAdd ? vaddq_f32(vld1q_f32(to), sum) : sum); };
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
#pragma GCC unroll 3
    for (int c = 0; c < 3; ++c) {  // one row of each pair, four columns
      const float64x2_t a = vreinterpretq_f64_f32(sums[r][2 * c]), b = vreinterpretq_f64_f32(sums[r][2 * c + 1]);
      finish(vreinterpretq_f32_f64(vzip1q_f64(a, b)), out + 2 * r * kColumns + 4 * c);
      finish(vreinterpretq_f32_f64(vzip2q_f64(a, b)), out + (2 * r + 1) * kColumns + 4 * c);
    }
  }
}

// 2^x for x ≤ 0, relative error below 3.5e-6: exp2_of_negative with two fewer steps.
HWY_INLINE float32x4_t weight_of_score(float32x4_t x) {
  x = vmaxq_f32(x, vdupq_n_f32(-127.0f));
  const float32x4_t magic = vdupq_n_f32(12582912.0f + 127.0f), shifted = vaddq_f32(x, magic);
  const float32x4_t f = vsubq_f32(x, vsubq_f32(shifted, magic));
  float32x4_t p = vfmaq_f32(vdupq_n_f32(5.59391364e-2f), f, vdupq_n_f32(9.60658394e-3f));
  p = vfmaq_f32(vdupq_n_f32(0.240237212f), f, p);
  p = vfmaq_f32(vdupq_n_f32(0.693119298f), f, p);
  p = vfmaq_f32(vdupq_n_f32(1.0f), f, p);
  return vmulq_f32(p, vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(shifted), 23)));
}
// Keys 0 and 2, and 1 and 3, of four columns: those columns of the operand.
HWY_INLINE void place_weights(uint16x8_t even, uint16x8_t odd, std::uint16_t* out) {
  const uint32x4_t x = vreinterpretq_u32_u16(vzip1q_u16(even, odd)), y = vreinterpretq_u32_u16(vzip2q_u16(even, odd));
  vst1q_u16(out, vreinterpretq_u16_u32(vzip1q_u32(x, y)));
  vst1q_u16(out + 8, vreinterpretq_u16_u32(vzip2q_u32(x, y)));
}
// P = 2^(factor · S − base) in two planes, as the columns of a panel, for keys `begin` to `end`, both multiples of 4,
// and its sums. Two passes keep more of the processor's pipes busy than one, which would have registers for only six
// weights at a time.
inline void weigh_16(float* HWY_RESTRICT scores, float factor, const float* HWY_RESTRICT base, std::int64_t begin,
                     std::int64_t end, std::uint16_t* HWY_RESTRICT out, std::int64_t plane,
                     float* HWY_RESTRICT row_sum) {
  const float32x4_t times = vdupq_n_f32(factor);
  const float32x4_t b0 = vnegq_f32(vld1q_f32(base)), b1 = vnegq_f32(vld1q_f32(base + 4)),
                    b2 = vnegq_f32(vld1q_f32(base + 8));
  float32x4_t t0 = vdupq_n_f32(0), t1 = t0, t2 = t0;
  float* HWY_RESTRICT s = scores + begin * kColumns;
  for (std::int64_t j = begin; j < end; j += 2, s += 2 * kColumns) {
    const float32x4_t p0 = weight_of_score(vfmaq_f32(b0, vld1q_f32(s), times));
    const float32x4_t p1 = weight_of_score(vfmaq_f32(b1, vld1q_f32(s + 4), times));
    const float32x4_t p2 = weight_of_score(vfmaq_f32(b2, vld1q_f32(s + 8), times));
    const float32x4_t p3 = weight_of_score(vfmaq_f32(b0, vld1q_f32(s + 12), times));
    const float32x4_t p4 = weight_of_score(vfmaq_f32(b1, vld1q_f32(s + 16), times));
    const float32x4_t p5 = weight_of_score(vfmaq_f32(b2, vld1q_f32(s + 20), times));
    vst1q_f32(s, p0), vst1q_f32(s + 4, p1), vst1q_f32(s + 8, p2);
    vst1q_f32(s + 12, p3), vst1q_f32(s + 16, p4), vst1q_f32(s + 20, p5);
    t0 = vaddq_f32(t0, vaddq_f32(p0, p3)), t1 = vaddq_f32(t1, vaddq_f32(p1, p4)),
    t2 = vaddq_f32(t2, vaddq_f32(p2, p5));
  }
  vst1q_f32(row_sum, vaddq_f32(vld1q_f32(row_sum), t0));
  vst1q_f32(row_sum + 4, vaddq_f32(vld1q_f32(row_sum + 4), t1));
  vst1q_f32(row_sum + 8, vaddq_f32(vld1q_f32(row_sum + 8), t2));
  for (std::int64_t j = begin; j < end; j += 4) {
    for (std::int64_t c = 0; c < kColumns; c += 4) {
      const float* HWY_RESTRICT const from = scores + j * kColumns + c;
      std::uint16_t* HWY_RESTRICT const to = out + j * kColumns + 4 * c;
      const float32x4_t p0 = vld1q_f32(from), p1 = vld1q_f32(from + kColumns), p2 = vld1q_f32(from + 2 * kColumns),
                        p3 = vld1q_f32(from + 3 * kColumns);
      place_weights(upper_plane(p0, p2), upper_plane(p1, p3), to);
      place_weights(lower_plane(p0, p2), lower_plane(p1, p3), to + plane);
    }
  }
}

// Features whose lower plane is not 0, in whole steps of a product: for bf16, the rotated ones.
struct FeatureRange {
  std::int64_t begin = 0, end = 0;
  FeatureRange(DataType type, const RowRotation& rotation, std::int64_t depth) : end(depth) {
    if (type != DataType::kBF16 || rotation.cos_sin == nullptr || rotation.pairs == 0) return;
    begin = rotation.first / BfmmlaUnit::kDepth * BfmmlaUnit::kDepth;
    end = (rotation.first + 2 * rotation.pairs + BfmmlaUnit::kDepth - 1) / BfmmlaUnit::kDepth * BfmmlaUnit::kDepth;
  }
};

struct BfmmlaProducts : PlaneProducts<BfmmlaUnit> {
  static constexpr bool kOverlaps = false;
  static constexpr std::int64_t kWeightPlanes = 2;
  template <class T> using Stored = T;

  FeatureRange q_lower, k_lower;
  std::int64_t p_plane;
  AlignedVector<std::uint16_t> p;  // weights

  BfmmlaProducts(const Block& block, bool keeps_keys)
      : PlaneProducts(block, keeps_keys),
        q_lower(block.job.q.type, block.job.q_rotation, depth),
        k_lower(block.job.k.type, block.job.k_rotation, depth),
        p_plane(keys * block.width),
        p(kWeightPlanes * p_plane) {}

  void score(Block& block, Tile& tile) {
    if (q_is_finite && k_is_finite) {
      constexpr std::int64_t rows = BfmmlaUnit::kRows;
      for (std::int64_t j = tile.begin / rows * rows; j < tile.end; j += rows) {
        score_group(k_at + j * depth, q.data() + tile.panel * q_panel, block.scores.data() + j * block.width);
      }
    } else {
      score_by_element(block, tile);
    }
    defer_scale(block, tile);
  }
  void score_group(const std::uint16_t* group, const std::uint16_t* queries, float* scores) const {
    Term16 terms[3];
    const std::int64_t count = terms_of(group, k_planes, k_plane, queries, q_planes, q_plane, terms);
    const auto cut = [&](Term16& term, const FeatureRange& features) HWY_ATTR {
      term = {term.left + features.begin * BfmmlaUnit::kRows, term.right + features.begin * kColumns,
              features.end - features.begin};
    };
    if (k_planes > 1) cut(terms[1], k_lower);
    if (q_planes > 1) cut(terms[count - 1], q_lower);
    multiply_16<false>(terms, count, depth, scores);
  }

  void weigh(Block& block, const Tile& tile, const float* HWY_RESTRICT base) {
    const std::int64_t width = block.width, first = step_before(tile.begin), last = step_after(tile.end);
    float* const scores = block.scores.data();
    std::fill(scores + first * width, scores + tile.begin * width, kNone);  // P = 0
    std::fill(scores + tile.end * width, scores + last * width, kNone);
    weigh_16(scores, tile.factor, base, first, last, p.data(), p_plane, block.row_sum.data() + tile.panel * width);
  }

  void add_values(Block& block, const Tile& tile) {
    const std::int64_t first = step_before(tile.begin), last = step_after(tile.end);
    float* const sums = block.sums_of(tile.panel);
    Term16 terms[3];
    for (std::int64_t f = 0; f < block.value_features; f += BfmmlaUnit::kRows) {
      const std::int64_t count = terms_of(v_at + f * kKeyBlock + first * BfmmlaUnit::kRows, v_planes, v_plane,
                                          p.data() + first * block.width, kWeightPlanes, p_plane, terms);
      multiply_16<true>(terms, count, last - first, sums + f * block.width);
    }
  }

  float weight(const Block& block, std::int64_t j, std::int64_t i) const {
    const std::int64_t at = (j / BfmmlaUnit::kPair * block.width + i) * BfmmlaUnit::kPair + j % BfmmlaUnit::kPair;
    return sum_of_planes(p.data() + at, kWeightPlanes, p_plane);
  }

  void before_rescaling(Block& /*block*/, std::int64_t /*panel*/) {}

  // The range of P, in whole steps of the product with V.
  static std::int64_t step_before(std::int64_t key) { return key / kStep * kStep; }
  static std::int64_t step_after(std::int64_t key) { return (key + kStep - 1) / kStep * kStep; }
};

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_BFMMLA_INL_H
