// Keys and values of q8_0, read in place for a few queries: numbers are multiplied as they are, and the scale of a block once.
// For code that is compiled once per SIMD target.

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

// q · the numbers of a block, lane by lane, in two sums: one would wait for itself.
HWY_INLINE VF product_of(const float* HWY_RESTRICT q, const Q8Block* HWY_RESTRICT block) {
  const DF d;
  const std::int64_t n = lanes();
  VF even = hn::Zero(d), odd = hn::Zero(d);
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < Q8Block::kElements; i += 2 * n) {
    even = hn::MulAdd(hn::LoadU(d, q + i), numbers_of(d, block, i), even);
    if (i + n < Q8Block::kElements) odd = hn::MulAdd(hn::LoadU(d, q + i + n), numbers_of(d, block, i + n), odd);
  }
  return hn::Add(even, odd);
}
HWY_INLINE VF add_product(const float* HWY_RESTRICT q, const void* row, std::int64_t f, VF sum) {
  const Q8Block* const block = static_cast<const Q8Block*>(row) + f / Q8Block::kElements;
  return hn::MulAdd(product_of(q + f, block), hn::Set(DF(), scale_of(block)), sum);
}

// The scores of a query: four keys at a time, whose sums do not wait for each other. There is room for three scores more.
template <class Rows> HWY_INLINE void score_blocks(const float* HWY_RESTRICT q, const Rows& keys, std::int64_t count,
                                                   std::int64_t features, float* HWY_RESTRICT scores) {
  const DF d;
  const std::int64_t bytes = row_bytes<Q8Block>(features);
  for (std::int64_t j = 0; j < count; j += 4) {
    for (std::int64_t i = j; i < j + 4; ++i) fetch_row_later(keys[i], bytes, keys.ahead_of(i));
    VF a = hn::Zero(d), b = a, c = a, e = a;
    for (std::int64_t f = 0; f < features; f += Q8Block::kElements) {
      a = add_product(q, keys[j], f, a);
      b = add_product(q, keys[j + 1], f, b);
      c = add_product(q, keys[j + 2], f, c);
      e = add_product(q, keys[j + 3], f, e);
    }
    store_sums(a, b, c, e, scores + j);
  }
}
// One query after another: for four and more, keys were widened.
HWY_INLINE void score_rows(Q8Block /*type*/, const float* q, std::int64_t rows, const StepRows& keys,
                           std::int64_t count, std::int64_t features, float* scores, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r, q += features, scores += stride) {
    with_places(keys, count, [&](const auto& places) HWY_ATTR { score_blocks(q, places, count, features, scores); });
  }
}

#define POSENC_ZERO_SUM(i) VF s##i = hn::Zero(d);
#define POSENC_ADD_NUMBERS(i) s##i = hn::MulAdd(w, numbers_of(d, block, (i)*n), s##i);
#define POSENC_STORE_SUM(i) hn::StoreU(hn::MulAdd(hn::LoadU(d, to + (i)*n), by, s##i), d, to + (i)*n);
#define POSENC_ADD_BLOCK(vectors)                                                           \
  if ((vectors)*n == Q8Block::kElements) {                                                  \
    POSENC_REPEAT_##vectors(POSENC_ZERO_SUM);                                               \
    for (std::int64_t j = 0; j < count; ++j) {                                              \
      const Q8Block* HWY_RESTRICT block = block_of(j);                                      \
      if (f == 0) fetch_row_later(block, row_bytes<Q8Block>(features), values.ahead_of(j)); \
      const VF w = hn::Set(d, weights[j] * scale_of(block));                                \
      POSENC_REPEAT_##vectors(POSENC_ADD_NUMBERS)                                           \
    }                                                                                       \
    POSENC_REPEAT_##vectors(POSENC_STORE_SUM) continue;                                     \
  }
// As for other types: sums[f] = sums[f] · rescale + Σ weight[j] · v[j, f].
template <class V, class Rows>
requires std::is_same_v<V, Q8Block> HWY_INLINE void add_rows(const float* HWY_RESTRICT weights, const Rows& values,
                                                             std::int64_t count, std::int64_t features, float rescale,
                                                             float* HWY_RESTRICT sums) {
  const DF d;
  const std::int64_t n = lanes();
  const VF by = hn::Set(d, rescale);
  for (std::int64_t f = 0; f < features; f += Q8Block::kElements) {
    float* HWY_RESTRICT to = sums + f;
    const auto block_of = [&](std::int64_t j)
                              HWY_ATTR { return static_cast<const Q8Block*>(values[j]) + f / Q8Block::kElements; };
    POSENC_ADD_BLOCK(8)
    POSENC_ADD_BLOCK(4)
    POSENC_ADD_BLOCK(2)
    for (std::int64_t i = 0; i < Q8Block::kElements; i += n) {  // a vector is a block, or has one lane
      VF s = hn::Zero(d);
      for (std::int64_t j = 0; j < count; ++j) {
        s = hn::MulAdd(hn::Set(d, weights[j] * scale_of(block_of(j))), numbers_of(d, block_of(j), i), s);
      }
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to + i), by, s), d, to + i);
    }
  }
}
#undef POSENC_ZERO_SUM
#undef POSENC_ADD_NUMBERS
#undef POSENC_STORE_SUM
#undef POSENC_ADD_BLOCK

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
