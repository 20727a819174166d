// Scores of keys of q8_0, read in place for one or two rows of queries: numbers are multiplied as they are, and the sum of a block
// by its scale. For code that is compiled once per SIMD target.

#if defined(POSENC_DECODE_Q8_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_Q8_INL_H
#undef POSENC_DECODE_Q8_INL_H
#else
#define POSENC_DECODE_Q8_INL_H
#endif

#include <type_traits>

#include "attention/cpu/decode/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// scales[row] of one block of at most kDecodeStep rows, and zeros up to a multiple of four and a whole vector.
template <class Rows>
HWY_INLINE void load_scales(const Rows& rows, std::int64_t count, std::int64_t block, float* HWY_RESTRICT scales) {
  HWY_ALIGN Half halves[kDecodeStep];
  for (std::int64_t j = 0; j < count; ++j) halves[j] = (static_cast<const Q8Block*>(rows[j]) + block)->scale;
  std::int64_t end = count;
  for (; end % 4 != 0 || end % lanes() != 0; ++end) halves[end] = Half{0};
  for (std::int64_t j = 0; j < end; j += lanes()) {
    hn::StoreU(convert::load_as(DF(), halves + j), DF(), scales + j);
  }
}

#define POSENC_ZERO_SUMS(r) VF s##r##0 = hn::Zero(d), s##r##1 = s##r##0, s##r##2 = s##r##0, s##r##3 = s##r##0;
#define POSENC_MULTIPLY_QUERY(r)                                              \
  if constexpr ((r) < kRows) {                                                \
    const VF x = hn::LoadU(d, q + (r)*q_stride + i);                          \
    s##r##0 = hn::MulAdd(x, a, s##r##0), s##r##1 = hn::MulAdd(x, b, s##r##1); \
    s##r##2 = hn::MulAdd(x, c, s##r##2), s##r##3 = hn::MulAdd(x, e, s##r##3); \
  }
#define POSENC_STORE_SUMS(r)                                                                     \
  if constexpr ((r) < kRows) {                                                                   \
    add_sums(s##r##0, s##r##1, s##r##2, s##r##3, scales + j, is_first, scores + (r)*stride + j); \
  }
// scores[r, j] (+)= q[r] · a block of key j for one or two rows, four keys at a time, whose sums do not wait for each other. There
// is room for three scores more.
template <int kRows, class Rows> HWY_INLINE void score_block(const float* HWY_RESTRICT q, std::int64_t q_stride,
                                                             const Rows& keys, std::int64_t count, std::int64_t block,
                                                             const float* HWY_RESTRICT scales, bool is_first,
                                                             float* HWY_RESTRICT scores, std::int64_t stride) {
  const DF d;
  const std::int64_t n = lanes();
  for (std::int64_t j = 0; j < count; j += 4) {
    const auto block_of = [&](std::int64_t key) HWY_ATTR {
      const Q8Block* const at = static_cast<const Q8Block*>(keys[j + key]) + block;
      fetch_later<1>(at, keys.ahead_of(j + key));  // one at a time: many at once wait for each other
      return at;
    };
    const Q8Block *HWY_RESTRICT b0 = block_of(0), *HWY_RESTRICT b1 = block_of(1);
    const Q8Block *HWY_RESTRICT b2 = block_of(2), *HWY_RESTRICT b3 = block_of(3);
    POSENC_REPEAT_2(POSENC_ZERO_SUMS)
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < Q8Block::kElements; i += n) {
      const VF a = numbers_of(d, b0, i), b = numbers_of(d, b1, i), c = numbers_of(d, b2, i), e = numbers_of(d, b3, i);
      POSENC_REPEAT_2(POSENC_MULTIPLY_QUERY)
    }
    POSENC_REPEAT_2(POSENC_STORE_SUMS)
  }
}
#undef POSENC_ZERO_SUMS
#undef POSENC_MULTIPLY_QUERY
#undef POSENC_STORE_SUMS
// Scores of at most kDecodeStep keys.
template <int kRows, class Rows> HWY_INLINE void score_blocks(const float* q, const Rows& keys, std::int64_t count,
                                                              std::int64_t features, float* HWY_RESTRICT scores,
                                                              std::int64_t stride) {
  HWY_ALIGN float scales[kDecodeStep];
  for (std::int64_t block = 0; block < features / Q8Block::kElements; ++block) {
    load_scales(keys, count, block, scales);
    score_block<kRows>(q + block * Q8Block::kElements, features, keys, count, block, scales, block == 0, scores,
                       stride);
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
