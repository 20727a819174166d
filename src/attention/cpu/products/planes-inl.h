// What the products of attention in bf16 have in common, whatever matrix unit computes them, with sums in f32. S = Q Kᵀ and
// P V are computed as their transposes, K Qᵀ and Vᵀ Pᵀ, so that the rows of a product are keys or features and its columns are
// the queries of a panel, and the online softmax is that of f32.
//
// A number that is not a bf16 (f16, rotated, or a weight) is the sum of two planes, its upper part and the remainder.
// All their products are added except that of the two lower planes. Error: a weight is within 2^-15 of its value; a
// score is within 2^-15 · scale · Σ |q · k| if q or k has two planes, otherwise as in f32. Subnormal bf16 count as 0.
//
// `Unit` multiplies kRows rows of kDepth numbers, and packs its operands:
//   left operand    [depth / kDepth, kRows, kDepth]: a group of keys, or of features
//   right operand   [depth / kPair, panel width, kPair]: the queries of a panel, or their weights

#ifndef POSENC_PLANES_INL_H  // compiled for a single SIMD target, which has the unit
#define POSENC_PLANES_INL_H

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "attention/cpu/block-inl.h"
#include "attention/cpu/pack-inl.h"
#include "kernels/cpu/machine.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline bool is_16_bits(DataType type) { return type == DataType::kF16 || type == DataType::kBF16; }
inline bool is_bf16(DataType type, const RowRotation& rotation) {
  return type == DataType::kBF16 && (rotation.cos_sin == nullptr || rotation.is_rounded);
}

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
// An element of an operand: the sum of its planes.
HWY_INLINE float sum_of_planes(const std::uint16_t* bits, std::int64_t planes, std::int64_t plane) {
  float sum = 0;
  for (std::int64_t p = 0; p < planes; ++p) sum += std::bit_cast<float>(std::uint32_t{bits[p * plane]} << 16);
  return sum;
}

// One product of a left and a right operand; up to three of them are summed.
struct Term16 {
  const std::uint16_t *left, *right;
  std::int64_t depth = 0;  // 0: same as the others
};
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

template <class Unit> struct PlaneProducts {
  static constexpr int kVectors = Unit::kVectors;
  static constexpr std::int64_t kStep = Unit::kDepth;
  static constexpr float kKeptRise = 8;
  static constexpr bool kDefersScale = true;

  std::int64_t keys;                                 // per block
  std::int64_t depth;                                // features, padded with zeros
  std::int64_t q_planes, k_planes, v_planes;         // 1 or 2
  std::int64_t q_panel, q_plane, k_plane, v_plane;   // elements
  std::int64_t blocks;                               // of keys that stay packed; 0: only the current one
  AlignedVector<std::uint16_t> q, k, v;              // operands
  std::uint16_t *k_at = k.data(), *v_at = v.data();  // the current block of keys
  AlignedVector<std::uint16_t> rounded;              // rows of the tensors' type
  AlignedVector<float> value_rows;
  bool q_is_finite = true, k_is_finite = true;  // checked if they have two planes
  ValueRows values;                             // made only if some value is not finite
  std::optional<bool> are_finite;               // those values; checked only if some are masked
  struct Kept {
    std::int64_t first = -1, last = -1;
    bool is_finite = true;
  };
  AlignedVector<Kept> kept;     // what is packed, for each of `blocks`
  std::int64_t kept_head = -1;  // head of the kept keys, counted across the batch

  // An f32 result must have the error of f32.
  static bool takes(const AttentionJob& job, const ScoreBias& bias) {
    return is_16_bits(job.out.type) && is_16_bits(job.k.type) && is_16_bits(job.v.type) && !bias.has_vectors() &&
           kernels::cpu::machine_multiplies_bf16_matrices();
  }
  static BlockSizes sizes_of(const AttentionJob& job) {
    return {queries_of_block(job, true), Unit::keys_of_block(std::max(job.q.features, job.v.features)),
            width_of<Unit>(), (job.v.features + Unit::kRows - 1) / Unit::kRows * Unit::kRows};
  }
  PlaneProducts(const Block& block, bool keeps_keys)
      : keys(block.keys),
        depth((block.features + Unit::kDepth - 1) / Unit::kDepth * Unit::kDepth),
        q_planes(is_bf16(block.job.q.type, block.job.q_rotation) ? 1 : 2),
        k_planes(is_bf16(block.job.k.type, block.job.k_rotation) ? 1 : 2),
        v_planes(block.job.v.type == DataType::kBF16 ? 1 : 2),
        q_panel(depth * block.width),
        q_plane(block.queries / block.width * q_panel),
        k_plane(keys * depth),
        v_plane(keys * block.value_features),
        blocks(keeps_keys ? kept_blocks(block) : 0),
        q(q_planes * q_plane),
        k(std::max<std::int64_t>(blocks, 1) * k_planes * k_plane),
        v(std::max(blocks, Unit::kValueBlocks) * v_planes * v_plane),
        rounded(static_cast<std::size_t>(
            block.job.q_rotation.is_rounded || block.job.k_rotation.is_rounded ? kKeyBlock * block.features : 0)),
        value_rows(floats(kKeyBlock * block.value_features)),
        kept(blocks) {}
  // k_at and v_at point into this
  PlaneProducts(const PlaneProducts&) = delete;
  PlaneProducts& operator=(const PlaneProducts&) = delete;

  // If several blocks of queries or heads use the same keys, and there are not too many, all keys of a head stay
  // packed.
  std::int64_t kept_blocks(const Block& block) const {
    const std::int64_t count = (block.job.k.sequence + keys - 1) / keys;
    const bool is_met_again = block.job.q.sequence > block.queries || block.job.group > 1;
    return is_met_again && 2 * count * (k_planes * k_plane + v_planes * v_plane) <= Unit::kMostKeptBytes ? count : 0;
  }
  // Where the values of the next block, starting at key `first`, will be packed: the previous block's may still be
  // waiting for their product.
  std::uint16_t* next_values(std::int64_t first) {
    if (blocks > 0) return v.data() + first / keys * v_planes * v_plane;
    return Unit::kValueBlocks > 1 && v_at == v.data() ? v.data() + v_planes * v_plane : v.data();
  }
  // Moves to a block of keys; returns whether it is already packed.
  bool reuse_packed(std::int64_t head, std::int64_t first, std::int64_t last) {
    v_at = next_values(first);
    if (blocks == 0) return false;
    if (head != std::exchange(kept_head, head)) std::fill(kept.begin(), kept.end(), Kept{});
    Kept& one = kept[first / keys];
    k_at = k.data() + first / keys * k_planes * k_plane;
    k_is_finite = one.is_finite;
    if (one.first == first && one.last == last) return true;
    one = {first, last};
    return false;
  }

  // Whether bf16 rows become operands as they are, or as `rotate` would round them.
  bool can_copy(const HeadTensor<const void>& x, const RowRotation& rotation) const {
    const bool is_there = x.feature_stride == 1 || rotation.cos_sin != nullptr;
    return is_there && x.features == depth && x.features % 8 == 0;
  }
  bool has_one_plane() const { return std::max(q_planes, k_planes) == 1; }

  void load_queries(Block& block) {
    const AttentionJob& job = block.job;
    for (std::int64_t first = block.begin, panel = 0; first < block.end; first += block.width, ++panel) {
      const std::int64_t last = std::min(first + block.width, block.end);
      std::uint16_t* const to = q.data() + panel * q_panel;
      if (q_planes > 1 || !can_copy(job.q, job.q_rotation)) {
        load_rows(job.q, job.q_rotation, block.b, block.h, first, last, block.features, block.rows.data());
        Unit::pack_columns(block.rows.data(), last - first, block.features, depth, q_planes, q_plane, to);
      } else if (job.q_rotation.cos_sin == nullptr) {
        Unit::copy_columns(job.q, block.b, block.h, first, last, to);
      } else {
        Unit::copy_columns(rotate_and_round(job.q, job.q_rotation, block.b, block.h, first, last, rounded.data()), 0,
                           0, 0, last - first, to);
      }
    }
    q_is_finite =
        has_one_plane() || all_finite(q.data(), (block.end - block.begin + block.width - 1) / block.width * q_panel);
  }

  // bf16 keys and values are read in place; others are first converted to rows of f32, then to two planes.
  void load_keys(Block& block) {
    are_finite.reset();
    if (reuse_packed(block.b * block.job.k.heads + block.key_head(), block.first_key, block.last_key)) return;
    pack_keys(block);
    k_is_finite = has_one_plane() || all_finite(k_at, (block.last_key - block.first_key + Unit::kRows - 1) /
                                                          Unit::kRows * Unit::kRows * depth);
    if (blocks > 0) kept[block.first_key / keys].is_finite = k_is_finite;
    pack_values(block);
  }
  void pack_keys(Block& block) {
    const AttentionJob& job = block.job;
    const std::int64_t g = block.key_head(), first = block.first_key, last = block.last_key;
    if (k_planes > 1 || !can_copy(job.k, job.k_rotation)) {
      load_rows(job.k, job.k_rotation, block.b, g, first, last, block.features, block.rows.data());
      Unit::pack_groups(block.rows.data(), last - first, block.features, depth, k_planes, k_plane, k_at);
    } else if (job.k_rotation.cos_sin == nullptr) {
      Unit::copy_groups(job.k, block.b, g, first, last, k_at);
    } else {
      Unit::copy_groups(rotate_and_round(job.k, job.k_rotation, block.b, g, first, last, rounded.data()), 0, 0, 0,
                        last - first, k_at);
    }
  }
  void pack_values(Block& block) {
    const AttentionJob& job = block.job;
    const std::int64_t g = block.key_head(), first = block.first_key, count = block.last_key - first;
    if (v_planes == 1 && job.v.feature_stride == 1 && job.v.features == block.value_features) {
      const auto row = [&](std::int64_t j) {
        return j < count ? job.v.row<std::uint16_t>(block.b, g, first + j) : nullptr;
      };
      Unit::pack_values(row, count, block.value_features, v_planes, v_plane, v_at);
    } else {
      pack_rows(job.v, block.b, g, first, block.last_key, block.value_features, value_rows.data());
      const auto row = [&](std::int64_t j) {
        return j < count ? static_cast<const float*>(value_rows.data()) + j * block.value_features : nullptr;
      };
      Unit::pack_values(row, count, block.value_features, v_planes, v_plane, v_at);
    }
  }

  // By the upper planes. Rows of f32 are created only here, where something is masked and not finite.
  bool values_are_finite(const Block& block) {
    if (are_finite) return *are_finite;
    are_finite = Unit::are_values_finite(v_at, block.last_key - block.first_key, block.value_features);
    if (*are_finite) return true;
    pack_rows(block.job.v, block.b, block.key_head(), block.first_key, block.last_key, block.value_features,
              value_rows.data());
    values = {value_rows.data(), block.value_features};
    return false;
  }

  // One product at a time, in f32, for q or k that has two planes and is not finite.
  void score_by_element(Block& block, const Tile& tile) const {
    const std::int64_t width = block.width;
    for (std::int64_t j = tile.begin; j < tile.end; ++j) {
      const std::uint16_t* const key = k_at + j / Unit::kRows * Unit::kRows * depth + j % Unit::kRows * Unit::kDepth;
      for (std::int64_t i = 0; i < width; ++i) {
        const std::uint16_t* const query = q.data() + tile.panel * q_panel + i * Unit::kPair;
        float sum = 0;
        for (std::int64_t f = 0; f < block.features; ++f) {
          const std::int64_t left = f / Unit::kDepth * Unit::kRows * Unit::kDepth + f % Unit::kDepth;
          const std::int64_t right = f / Unit::kPair * width * Unit::kPair + f % Unit::kPair;
          sum += sum_of_planes(key + left, k_planes, k_plane) * sum_of_planes(query + right, q_planes, q_plane);
        }
        block.scores[j * width + i] = sum;
      }
    }
  }

  // Applies the factor that the unit's products lack later, or here if the largest product is not the largest score.
  static void defer_scale(Block& block, Tile& tile) {
    tile.factor = static_cast<float>(block.job.scale * kLog2E);
    if (tile.factor > 0) return;
    const VF by = hn::Set(DF(), tile.factor);
    for (std::int64_t at = tile.begin * block.width; at < tile.end * block.width; at += lanes()) {
      hn::StoreU(hn::Mul(hn::LoadU(DF(), block.scores.data() + at), by), DF(), block.scores.data() + at);
    }
    tile.factor = 1;
  }
};

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_PLANES_INL_H
