// The caller's masks as tiles and rows of scores need them, for code that is compiled once per SIMD target: which of 32 keys
// a query attends to, as the bits of a word; and what is added to scores, in units of log 2.

#if defined(POSENC_MASKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_MASKS_INL_H
#undef POSENC_MASKS_INL_H
#else
#define POSENC_MASKS_INL_H
#endif

#include <cstring>

#include "attention/cpu/pack-inl.h"
#include "attention/cpu/score_bias.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DU = hn::RebindToUnsigned<DF>;

constexpr std::int64_t kWordKeys = 32;
HWY_INLINE std::uint32_t all_keys(std::int64_t count) {
  return count < kWordKeys ? (std::uint32_t{1} << count) - 1 : ~std::uint32_t{0};
}

// Bit n of the result: byte n, counted from the lowest, is not 0.
HWY_INLINE std::uint32_t nonzero_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kLow = 0x7F7F7F7F7F7F7F7F;
  const std::uint64_t tops = (((bytes & kLow) + kLow) | bytes) & ~kLow;
  return static_cast<std::uint32_t>(((tops >> 7) * 0x0102040810204080) >> 56);
}
// Bit j of the result: the boolean mask leaves key first + j visible. At most kWordKeys keys.
HWY_INLINE std::uint32_t seen_by_mask(const ScoreMask& mask, std::int64_t b, std::int64_t h, std::int64_t i,
                                      std::int64_t first, std::int64_t count) {
  const auto* const row = static_cast<const std::uint8_t*>(mask.data) + b * mask.batch_stride + h * mask.head_stride +
                          i * mask.query_stride + first * mask.key_stride;
  std::uint32_t seen = 0;
  std::int64_t j = 0;
#if HWY_TARGET == HWY_AVX3
  if (mask.key_stride == 1 && count == kWordKeys) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
    return _mm256_test_epi8_mask(bytes, bytes);
  }
#endif
  for (; mask.key_stride == 1 && j + 8 <= count; j += 8) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, row + j, sizeof bytes);
    seen |= nonzero_bytes(bytes) << j;
  }
  for (; j < count; ++j) seen |= static_cast<std::uint32_t>(row[j * mask.key_stride] != 0) << j;
  return seen;
}
// The same for a window or chunks by position.
HWY_INLINE std::uint32_t seen_by_position(const PositionLimits& limits, std::int64_t b, std::int64_t i,
                                          std::int64_t first, std::int64_t count) {
  const PositionRange range = limits.queries[b * limits.query_stride + i];
  const std::int64_t* const positions = limits.keys + b * limits.key_stride + first;
  std::uint32_t seen = 0;
  for (std::int64_t j = 0; j < count; ++j) seen |= static_cast<std::uint32_t>(range.has(positions[j])) << j;
  return seen;
}
// The same for padding.
HWY_INLINE std::uint32_t seen_by_key_mask(const AttentionJob& job, std::int64_t b, std::int64_t first,
                                          std::int64_t count) {
  const std::int64_t* const kept = job.key_mask + b * job.k.sequence + first;
  std::uint32_t seen = 0;
  std::int64_t j = 0;
#if HWY_TARGET == HWY_AVX3
  for (; j + 8 <= count; j += 8) {
    const __m512i eight = _mm512_loadu_si512(kept + j);
    seen |= static_cast<std::uint32_t>(_mm512_test_epi64_mask(eight, eight)) << j;
  }
#endif
  for (; j < count; ++j) seen |= static_cast<std::uint32_t>(kept[j] != 0) << j;
  return seen;
}

inline bool adds_mask(const AttentionJob& job) {
  return job.mask.data != nullptr && job.mask.type != DataType::kBool;
}
// Whether keys are hidden by the masks of scores other than by what is added.
inline bool hides_by_words(const AttentionJob& job) {
  return job.limits.are_set() || (job.mask.data != nullptr && job.mask.type == DataType::kBool);
}
// The masks of scores that hides_by_words means.
HWY_INLINE std::uint32_t seen_by_masks(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i,
                                       std::int64_t first, std::int64_t count) {
  std::uint32_t seen = all_keys(count);
  if (job.mask.data != nullptr && job.mask.type == DataType::kBool) {
    seen &= seen_by_mask(job.mask, b, h, i, first, count);
  }
  if (job.limits.are_set()) seen &= seen_by_position(job.limits, b, i, first, count);
  return seen;
}

// −inf in the lanes whose bit is not set.
HWY_INLINE VF hide_lanes(VF score, hn::Vec<DU> words, hn::Vec<DU> bits) {
  const auto is_hidden = hn::Eq(hn::And(words, bits), hn::Zero(DU()));
  return hn::IfThenElse(hn::RebindMask(DF(), is_hidden), hn::Set(DF(), kNone), score);
}
// score + added; −inf if that is added, whatever the score.
HWY_INLINE VF add_or_hide(VF score, VF added) {
  const VF none = hn::Set(DF(), kNone);
  return hn::IfThenElse(hn::Eq(added, none), none, hn::Add(score, added));
}

// What the mask adds for one query and a key, rounded alike wherever vectors begin.
template <class T> HWY_INLINE float added_by(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return static_cast<float>(kLog2E * x);
  } else {
    return element(x) * static_cast<float>(kLog2E);
  }
}
template <class T> HWY_INLINE const T* mask_row(const ScoreMask& mask, std::int64_t b, std::int64_t h, std::int64_t i,
                                                std::int64_t first) {
  return static_cast<const T*>(mask.data) + b * mask.batch_stride + h * mask.head_stride + i * mask.query_stride +
         first * mask.key_stride;
}
// For `count` keys from `first` on.
inline void load_mask_row(const ScoreMask& mask, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t first,
                          std::int64_t count, float* HWY_RESTRICT out) {
  kernels::with_type(mask.type, [&](auto kind) HWY_ATTR {
    using T = decltype(kind);
    const T* HWY_RESTRICT row = mask_row<T>(mask, b, h, i, first);
    std::int64_t j = 0;
    if constexpr (!std::is_same_v<T, double>) {
      const VF by = hn::Set(DF(), static_cast<float>(kLog2E));
      for (; mask.key_stride == 1 && j + lanes() <= count; j += lanes()) {
        hn::StoreU(hn::Mul(convert::load_as(DF(), row + j), by), DF(), out + j);
      }
    }
    for (; j < count; ++j) out[j] = added_by(row[j * mask.key_stride]);
  });
}

// Four queries and as many keys of a mask whose keys are adjacent, transposed: out [keys, stride]. Returns the first key
// that is not done.
template <class T> HWY_INLINE std::int64_t transpose_mask(const T* HWY_RESTRICT row, std::int64_t query_stride,
                                                          std::int64_t keys, std::int64_t stride,
                                                          float* HWY_RESTRICT out) {
  std::int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const auto by = hn::Set(d, static_cast<float>(kLog2E));
  for (; j + 4 <= keys; j += 4, out += 4 * stride) {
    const auto r0 = hn::Mul(convert::load_as(d, row + j), by);
    const auto r1 = hn::Mul(convert::load_as(d, row + query_stride + j), by);
    const auto r2 = hn::Mul(convert::load_as(d, row + 2 * query_stride + j), by);
    const auto r3 = hn::Mul(convert::load_as(d, row + 3 * query_stride + j), by);
    const auto a = hn::InterleaveLower(d, r0, r2), c = hn::InterleaveLower(d, r1, r3);
    const auto e = hn::InterleaveUpper(d, r0, r2), g = hn::InterleaveUpper(d, r1, r3);
    hn::StoreU(hn::InterleaveLower(d, a, c), d, out);
    hn::StoreU(hn::InterleaveUpper(d, a, c), d, out + stride);
    hn::StoreU(hn::InterleaveLower(d, e, g), d, out + 2 * stride);
    hn::StoreU(hn::InterleaveUpper(d, e, g), d, out + 3 * stride);
  }
#else
  (void)row, (void)query_stride, (void)keys, (void)stride, (void)out;
#endif
  return j;
}
// For the queries at `at` and keys from first_key on, [keys, width], with 0 past the last query.
inline void load_mask_tile(const ScoreMask& mask, const terms::TilePlace& at, std::int64_t width,
                           float* HWY_RESTRICT out) {
  kernels::with_type(mask.type, [&](auto kind) HWY_ATTR {
    using T = decltype(kind);
    for (std::int64_t i = 0; i < width;) {
      const std::int64_t some = std::min<std::int64_t>(4, i < at.queries ? at.queries - i : width - i);
      const T* const row = mask_row<T>(mask, at.b, at.h, at.first_query + std::min(i, at.queries - 1), at.first_key);
      std::int64_t done = 0;
      if constexpr (!std::is_same_v<T, double>) {
        if (i + 4 <= at.queries && mask.key_stride == 1) {
          done = transpose_mask(row, mask.query_stride, at.keys, width, out + i);
        }
      }
      for (std::int64_t j = done; j < at.keys; ++j) {
        for (std::int64_t q = 0; q < some; ++q) {
          out[j * width + i + q] = i < at.queries ? added_by(row[q * mask.query_stride + j * mask.key_stride]) : 0.0f;
        }
      }
      i += some;
    }
  });
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
