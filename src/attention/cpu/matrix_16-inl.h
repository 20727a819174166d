// The products of attention in bf16 by a processor's matrix unit, with sums in f32; for code that is compiled once
// per SIMD target. S = Q Kᵀ and P V are computed as their transposes, K Qᵀ and Vᵀ Pᵀ, so that the rows of a product
// are keys or features and its columns are the queries of a panel, as in panel-inl.h, and the online softmax is the
// same for f32 and bf16.
//
// A number that is not a bf16 (f16, rotated, or a weight) is the sum of two planes, its upper part and the remainder.
// All their products are added except that of the two lower planes. Error: a weight is within 2^-15 of its value; a
// score is within 2^-15 · scale · Σ |q · k| if q or k has two planes, otherwise as in f32. Subnormal bf16 count as 0.
//
//   left operand    [depth / kMatrixDepth, kMatrixRows, kMatrixDepth]: a group of keys, or of features
//   right operand   [depth / kMatrixStep, panel width, kMatrixStep]: the queries of a panel, or their weights

#if defined(POSENC_MATRIX_16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_MATRIX_16_INL_H
#undef POSENC_MATRIX_16_INL_H
#else
#define POSENC_MATRIX_16_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "attention/cpu/panel-inl.h"
#include "attention/cpu/score_bias.h"
#include "attention/cpu/tiles.h"
#include "attention/job.h"
#include "hwy/highway.h"
#include "kernels/cpu/native_16-inl.h"

#undef POSENC_MATRIX_16
#undef POSENC_OVERLAPS_16
#define POSENC_OVERLAPS_16 0  // whether weights are computed while the unit multiplies (overlap-inl.h)
#if POSENC_NATIVE_16
#define POSENC_MATRIX_16 1
#include "attention/cpu/bfmmla-inl.h"
#elif HWY_TARGET == HWY_AVX3 && defined(__linux__) && !defined(__clang__)
#define POSENC_MATRIX_16 1
#undef POSENC_OVERLAPS_16
#define POSENC_OVERLAPS_16 1
#include "attention/cpu/amx-inl.h"
#else
#define POSENC_MATRIX_16 0
#endif

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// An f32 result must have the error of f32.
inline bool is_16_bits(DataType type) { return type == DataType::kF16 || type == DataType::kBF16; }
inline bool is_for_matrix_unit(const AttentionJob& job, const ScoreBias& bias) {
#if POSENC_MATRIX_16
  return is_16_bits(job.out.type) && is_16_bits(job.k.type) && is_16_bits(job.v.type) && !bias.has_vectors() &&
         has_matrix_unit();
#else
  (void)job, (void)bias;
  return false;
#endif
}

// Large blocks, if there are enough of them for many threads. The number of threads itself must not affect a result.
inline std::int64_t queries_of_block(const AttentionJob& job, bool by_matrix) {
  const bool has_many = job.q.batch * job.q.heads * job.q.sequence >= 16 * kLargeQueryBlock;
  const bool share_more = by_matrix || job.k_rotation.cos_sin != nullptr;
  if (has_many && share_more) return kLargeQueryBlock;
  return by_matrix ? kMatrixQueryBlock : kQueryBlock;
}

#if POSENC_MATRIX_16
constexpr std::int64_t kValueGroup = kMatrixRows;
#else
inline std::int64_t matrix_keys(std::int64_t /*features*/) { return kKeyBlock; }
HWY_INLINE std::int64_t matrix_width() { return panel_width(); }
constexpr std::int64_t kValueGroup = kGroup;
#endif

#if POSENC_MATRIX_16

inline bool is_bf16(DataType type, const RowRotation& rotation) {
  return type == DataType::kBF16 && (rotation.cos_sin == nullptr || rotation.is_rounded);
}

// Features whose lower plane is not 0, in whole steps of a product: for bf16, the rotated ones.
struct FeatureRange {
  std::int64_t begin = 0, end = 0;
  FeatureRange() = default;
  FeatureRange(DataType type, const RowRotation& rotation, std::int64_t depth) : end(depth) {
    if (type != DataType::kBF16 || rotation.cos_sin == nullptr || rotation.pairs == 0) return;
    begin = rotation.first / kMatrixDepth * kMatrixDepth;
    end = (rotation.first + 2 * rotation.pairs + kMatrixDepth - 1) / kMatrixDepth * kMatrixDepth;
  }
};

// The operands of one block of queries and one block of keys.
struct Operands16 {
  std::int64_t keys = 0;                                                         // per block
  std::int64_t depth = 0;                                                        // features, padded with zeros
  std::int64_t q_planes = 0, k_planes = 0, v_planes = 0;                         // 1 or 2; 0: the unit is not used
  std::int64_t q_panel = 0, q_plane = 0, k_plane = 0, v_plane = 0, p_plane = 0;  // elements
  FeatureRange q_lower, k_lower;
  std::int64_t blocks = 0;  // of keys that stay packed; 0: none, only the current one
  AlignedVector<std::uint16_t> q, k, v, p;
  bool q_is_finite = true, k_is_finite = true;     // checked if they have two planes
  std::uint16_t *k_at = nullptr, *v_at = nullptr;  // the current block of keys, in k and v
  struct Kept {
    std::int64_t first = -1, last = -1;
    bool is_finite = true;
  };
  AlignedVector<Kept> kept;
  std::int64_t kept_head = -1;  // head of the kept keys, counted across the batch

  Operands16() = default;
  Operands16(const AttentionJob& job, std::int64_t queries, std::int64_t some_keys, std::int64_t width,
             std::int64_t value_rows, bool keeps)
      : keys(some_keys),
        depth((job.q.features + kMatrixDepth - 1) / kMatrixDepth * kMatrixDepth),
        q_planes(is_bf16(job.q.type, job.q_rotation) ? 1 : 2),
        k_planes(is_bf16(job.k.type, job.k_rotation) ? 1 : 2),
        v_planes(job.v.type == DataType::kBF16 ? 1 : 2),
        q_panel(depth * width),
        q_plane(queries / width * q_panel),
        k_plane(keys * depth),
        v_plane(keys * value_rows),
        p_plane(keys * width),
        q_lower(job.q.type, job.q_rotation, depth),
        k_lower(job.k.type, job.k_rotation, depth),
        blocks(keeps ? kept_blocks(job, queries) : 0),
        q(static_cast<std::size_t>(q_planes * q_plane)),
        k(static_cast<std::size_t>(std::max<std::int64_t>(blocks, 1) * k_planes * k_plane)),
        v(static_cast<std::size_t>(std::max<std::int64_t>(blocks, 1 + POSENC_OVERLAPS_16) * v_planes * v_plane)),
        p(static_cast<std::size_t>(POSENC_OVERLAPS_16 ? 0 : 2 * p_plane)),  // else in place of the scores
        k_at(k.data()),
        v_at(v.data()),
        kept(static_cast<std::size_t>(blocks)) {}

  // If several blocks of queries or heads use the same keys, and there are not too many, all keys of a head stay
  // packed.
  std::int64_t kept_blocks(const AttentionJob& job, std::int64_t queries) const {
    constexpr std::int64_t kMostBytes = POSENC_OVERLAPS_16 ? 1 << 20 : 2 << 20;
    const std::int64_t count = (job.k.sequence + keys - 1) / keys;
    const bool is_met_again = job.q.sequence > queries || job.group > 1;
    return is_met_again && 2 * count * (k_planes * k_plane + v_planes * v_plane) <= kMostBytes ? count : 0;
  }
  // Where the values of the next block, starting at key `first`, will be packed: the previous block's may still be
  // waiting for their product.
  std::uint16_t* next_values(std::int64_t first) {
    if (blocks > 0) return v.data() + first / keys * v_planes * v_plane;
    return POSENC_OVERLAPS_16 && v_at == v.data() ? v.data() + v_planes * v_plane : v.data();
  }
  // Moves to a block of keys; returns whether it is already packed.
  bool reuse_packed(std::int64_t head, std::int64_t first, std::int64_t last) {
    v_at = next_values(first);
    if (blocks == 0) return false;
    if (head != std::exchange(kept_head, head)) std::fill(kept.begin(), kept.end(), Kept{});
    Kept& one = kept[static_cast<std::size_t>(first / keys)];
    k_at = k.data() + first / keys * k_planes * k_plane;
    k_is_finite = one.is_finite;
    if (one.first == first && one.last == last) return true;
    one = {first, last};
    return false;
  }
};

// Whether a plane is finite throughout. The lower plane of an infinity is 0, and 0 times infinity is NaN.
inline bool all_finite(const std::uint16_t* bits, std::int64_t count) {
  const hn::CappedTag<std::uint16_t, 32> d;
  const auto sign = hn::Set(d, std::uint16_t{0x8000});
  auto largest = hn::Zero(d);
  std::int64_t i = 0;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  for (; i + n <= count; i += n) largest = hn::Max(largest, hn::AndNot(sign, hn::LoadU(d, bits + i)));
  std::uint16_t rest = 0;
  for (; i < count; ++i) rest = std::max<std::uint16_t>(rest, bits[i] & 0x7FFF);
  return rest < 0x7F80 && hn::AllTrue(d, hn::Lt(largest, hn::Set(d, std::uint16_t{0x7F80})));
}
// The same for the packed values of the given number of keys, with zeros past the last.
inline bool are_values_finite(const std::uint16_t* values, std::int64_t keys, std::int64_t features) {
#if POSENC_OVERLAPS_16
  return all_finite(values, (keys + kMatrixDepth - 1) / kMatrixDepth * kMatrixDepth * features);
#else
  for (std::int64_t f = 0; f < features; f += kMatrixRows) {
    if (!all_finite(values + f * kKeyBlock, keys * kMatrixRows)) return false;
  }
  return true;
#endif
}
// An element of an operand: the sum of its planes.
HWY_INLINE float sum_of_planes(const std::uint16_t* bits, std::int64_t planes, std::int64_t plane) {
  float sum = 0;
  for (std::int64_t p = 0; p < planes; ++p) sum += std::bit_cast<float>(std::uint32_t{bits[p * plane]} << 16);
  return sum;
}

// The pairs of planes to multiply: of two and two, all but the lower ones.
HWY_INLINE std::int64_t terms_of(const std::uint16_t* left, std::int64_t left_planes, std::int64_t left_plane,
                                 const std::uint16_t* right, std::int64_t right_planes, std::int64_t right_plane,
                                 Term16* terms) {
  std::int64_t count = 0;
  terms[count++] = {left, right};
  if (left_planes > 1) terms[count++] = {left + left_plane, right};
  if (right_planes > 1) terms[count++] = {left, right + right_plane};
  return count;
}

#endif  // POSENC_MATRIX_16

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
