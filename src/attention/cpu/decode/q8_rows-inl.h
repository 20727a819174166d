// Keys and values of q8_0, read in place for the rows of queries that share them: a block is widened in registers, for up to eight
// rows at once. For code that is compiled once per SIMD target.

#if defined(POSENC_DECODE_Q8_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_Q8_ROWS_INL_H
#undef POSENC_DECODE_Q8_ROWS_INL_H
#else
#define POSENC_DECODE_Q8_ROWS_INL_H
#endif

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "attention/cpu/decode/add-inl.h"
#include "attention/cpu/decode/q8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One block of each of at most kDecodeStep keys, with a key in each lane: four numbers of a key in a word, and their scales.
struct Q8Lanes {
  HWY_ALIGN std::int32_t words[Q8Block::kElements / 4][kDecodeStep];
  HWY_ALIGN float scales[kDecodeStep];
};
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void transpose_block(const Q8Block* const* block, std::int64_t j, Q8Lanes& to) {
  for (std::int64_t key = 0; key < 4; ++key) {
    for (std::int64_t word = 0; word < Q8Block::kElements / 4; ++word) {
      std::memcpy(&to.words[word][j + key], block[key]->values + 4 * word, 4);
    }
  }
}
#else
HWY_INLINE void transpose_block(const Q8Block* const* block, std::int64_t j, Q8Lanes& to) {
  const hn::FixedTag<std::int32_t, 4> d;
  const hn::FixedTag<std::int64_t, 2> d64;
  const hn::FixedTag<std::int8_t, 16> d8;
  for (std::int64_t half = 0; half < 2; ++half) {
    const auto load = [&](int key) HWY_ATTR { return hn::BitCast(d, hn::LoadU(d8, block[key]->values + 16 * half)); };
    const auto k0 = load(0), k1 = load(1), k2 = load(2), k3 = load(3);
    const auto a = hn::BitCast(d64, hn::InterleaveLower(d, k0, k1)),
               b = hn::BitCast(d64, hn::InterleaveUpper(d, k0, k1));
    const auto c = hn::BitCast(d64, hn::InterleaveLower(d, k2, k3)),
               e = hn::BitCast(d64, hn::InterleaveUpper(d, k2, k3));
    std::int32_t(*const words)[kDecodeStep] = to.words + 4 * half;
    hn::Store(hn::BitCast(d, hn::InterleaveLower(d64, a, c)), d, words[0] + j);
    hn::Store(hn::BitCast(d, hn::InterleaveUpper(d64, a, c)), d, words[1] + j);
    hn::Store(hn::BitCast(d, hn::InterleaveLower(d64, b, e)), d, words[2] + j);
    hn::Store(hn::BitCast(d, hn::InterleaveUpper(d64, b, e)), d, words[3] + j);
  }
}
#endif
// Up to a whole vector, lanes past the last key have any numbers, and a scale of 0.
template <class Rows>
HWY_INLINE void load_lanes(const Rows& keys, std::int64_t count, std::int64_t block, Q8Lanes& to) {
  HWY_ALIGN Half scales[kDecodeStep];
  std::int64_t j = 0;
  for (; j < count; j += 4) {
    const Q8Block* blocks[4];
#pragma GCC unroll 4
    for (std::int64_t key = 0; key < 4; ++key) {
      blocks[key] = static_cast<const Q8Block*>(keys[j + key]) + block;
      scales[j + key] = blocks[key]->scale;
    }
    transpose_block(blocks, j, to);
  }
  for (; j % lanes() != 0; ++j) {
    scales[j] = Half{0};
    for (auto& word : to.words) word[j] = 0;
  }
  for (j = 0; j < count; j += lanes()) {
    hn::Store(convert::load_as(DF(), scales + j), DF(), to.scales + j);
  }
}
// Number `kByte` of each word.
template <int kByte> HWY_INLINE VF number_of_word(hn::Vec<hn::RebindToSigned<DF>> word) {
  if constexpr (kByte < 3) word = hn::ShiftLeft<24 - 8 * kByte>(word);
  return hn::ConvertTo(DF(), hn::ShiftRight<24>(word));
}

#define POSENC_ZERO_SUMS(m) VF s##m##0 = hn::Zero(d), s##m##1 = s##m##0;
#define POSENC_MULTIPLY_QUERY(m)                                           \
  if constexpr ((m) < kSums && (m) % kSets == kByte % kSets) {             \
    const VF x = hn::Set(d, q[(m) / kSets * q_stride + 4 * word + kByte]); \
    s##m##0 = hn::MulAdd(x, a, s##m##0);                                   \
    if constexpr (kVectors == 2) s##m##1 = hn::MulAdd(x, b, s##m##1);      \
  }
#define POSENC_MULTIPLY_BYTE(byte)                                                                \
  {                                                                                               \
    constexpr int kByte = byte;                                                                   \
    const VF a = number_of_word<kByte>(low), b = kVectors == 2 ? number_of_word<kByte>(high) : a; \
    POSENC_REPEAT_8(POSENC_MULTIPLY_QUERY)                                                        \
  }
#define POSENC_ADD_SET(m, other) s##m##0 = hn::Add(s##m##0, s##other##0), s##m##1 = hn::Add(s##m##1, s##other##1);
#define POSENC_STORE_SUMS(m)                                                                              \
  if constexpr ((m) < kSums && (m) % kSets == 0) {                                                        \
    finish(scores + (m) / kSets * stride, s##m##0, keys.scales + j);                                      \
    if constexpr (kVectors == 2) finish(scores + (m) / kSets * stride + n, s##m##1, keys.scales + j + n); \
  }
// scores[r, j…] (+)= q[r] · the block of one or two vectors of keys from j on. Few rows have several sums each, because a sum
// would wait for itself.
template <int kRows, int kVectors, class Fetch>
HWY_INLINE void score_lanes(const float* HWY_RESTRICT q, std::int64_t q_stride, const Q8Lanes& keys, std::int64_t j,
                            bool is_first, const Fetch& fetch, float* HWY_RESTRICT scores, std::int64_t stride) {
  constexpr int kSets = std::min<int>(4, kRowsAtOnce / kRows), kSums = kRows * kSets;
  const DF d;
  const hn::RebindToSigned<DF> di;
  const std::int64_t n = lanes(), some = kVectors * n * 4 / Q8Block::kElements;
  POSENC_REPEAT_8(POSENC_ZERO_SUMS)
  for (std::int64_t word = 0; word < Q8Block::kElements / 4; ++word) {
    fetch(j + word * some, some);
    const auto low = hn::Load(di, keys.words[word] + j),
               high = kVectors == 2 ? hn::Load(di, keys.words[word] + j + n) : low;
    POSENC_MULTIPLY_BYTE(0) POSENC_MULTIPLY_BYTE(1) POSENC_MULTIPLY_BYTE(2) POSENC_MULTIPLY_BYTE(3)
  }
  if constexpr (kSets > 1) {
    POSENC_ADD_SET(0, 1)
    POSENC_ADD_SET(2, 3)
    POSENC_ADD_SET(4, 5)
    POSENC_ADD_SET(6, 7)
  }
  if constexpr (kSets > 2) {
    POSENC_ADD_SET(0, 2)
    POSENC_ADD_SET(4, 6)
  }
  const auto finish = [&](float* HWY_RESTRICT out, VF sum, const float* scales) HWY_ATTR {
    const VF by = hn::Load(d, scales);
    hn::StoreU(is_first ? hn::Mul(sum, by) : hn::MulAdd(sum, by, hn::LoadU(d, out)), d, out);
  };
  scores += j;
  POSENC_REPEAT_8(POSENC_STORE_SUMS)
}
#undef POSENC_ZERO_SUMS
#undef POSENC_MULTIPLY_QUERY
#undef POSENC_MULTIPLY_BYTE
#undef POSENC_ADD_SET
#undef POSENC_STORE_SUMS

// The rows r to `rows`, as many as whole tiles have; returns the first that is left.
template <int kRows, class Fetch>
HWY_INLINE std::int64_t score_tiles(const float* q, std::int64_t q_stride, std::int64_t r, std::int64_t rows,
                                    const Q8Lanes& keys, std::int64_t count, bool is_first, const Fetch& fetch,
                                    float* scores, std::int64_t stride) {
  const auto fetch_once = [&](std::int64_t j, std::int64_t some) HWY_ATTR {
    if (r == 0) fetch(j, some);
  };
  for (; r + kRows <= rows; r += kRows) {
    const float* const some = q + r * q_stride;
    float* const out = scores + r * stride;
    std::int64_t j = 0;
    for (; j + lanes() < count; j += 2 * lanes())
      score_lanes<kRows, 2>(some, q_stride, keys, j, is_first, fetch_once, out, stride);
    if (j < count) score_lanes<kRows, 1>(some, q_stride, keys, j, is_first, fetch_once, out, stride);
  }
  return r;
}
// Scores of at most kDecodeStep keys. There is room for a vector of scores more.
template <class Rows> HWY_INLINE void score_step_of_q8(const float* q, std::int64_t rows, const Rows& keys,
                                                       std::int64_t count, std::int64_t features, float* scores,
                                                       std::int64_t stride) {
  Q8Lanes block;
  for (std::int64_t at = 0; at < features / Q8Block::kElements; ++at, q += Q8Block::kElements) {
    load_lanes(keys, count, at, block);
    const auto fetch = [&](std::int64_t j, std::int64_t some) HWY_ATTR {
      for (const std::int64_t end = j + some; j < end; ++j) {
        fetch_later<1>(static_cast<const Q8Block*>(keys[j]) + at, keys.ahead_of(j));
      }
    };
    std::int64_t r = 0;
    if constexpr (kRowsAtOnce == 8)
      r = score_tiles<8>(q, features, r, rows, block, count, at == 0, fetch, scores, stride);
    r = score_tiles<4>(q, features, r, rows, block, count, at == 0, fetch, scores, stride);
    r = score_tiles<3>(q, features, r, rows, block, count, at == 0, fetch, scores, stride);
    r = score_tiles<2>(q, features, r, rows, block, count, at == 0, fetch, scores, stride);
    if (r < rows) score_tiles<1>(q, features, r, rows, block, count, at == 0, fetch, scores, stride);
  }
}
HWY_INLINE void score_rows(Q8Block /*type*/, const float* q, std::int64_t rows, const StepRows& keys,
                           std::int64_t count, std::int64_t features, float* scores, std::int64_t stride) {
  with_places(keys, count, [&](const auto& places) HWY_ATTR {
    for (std::int64_t j = 0; j < count; j += kDecodeStep) {
      const auto some = places.from(j);
      const std::int64_t few = std::min(kDecodeStep, count - j);
      if (rows == 1) {
        score_blocks<1>(q, some, few, features, scores + j, stride);
      } else if (rows == 2) {
        score_blocks<2>(q, some, few, features, scores + j, stride);
      } else {
        score_step_of_q8(q, rows, some, few, features, scores + j, stride);
      }
    }
  });
}

// The values of one block of at most kDecodeStep rows of V, times the weights of a few rows, [row, kDecodeStep], which are
// multiplied by the scales already.
struct Q8Sums {
  const float* weights;
  std::int64_t block, count;
  const float* rescale;
  bool fetches;  // whether it is the first to read these values
  float* sums;
  std::int64_t stride;
};

#define POSENC_ZERO_SUMS(r) VF s##r##0 = hn::Zero(d), s##r##1 = s##r##0, s##r##2 = s##r##0, s##r##3 = s##r##0;
#define POSENC_ADD_VALUES(r)                                                                               \
  if constexpr ((r) < kRows) {                                                                             \
    const VF w = hn::Set(d, weights[(r)*kDecodeStep + j]);                                                 \
    s##r##0 = hn::MulAdd(w, a, s##r##0), s##r##1 = hn::MulAdd(w, b, s##r##1);                              \
    if constexpr (kVectors == 4) s##r##2 = hn::MulAdd(w, c, s##r##2), s##r##3 = hn::MulAdd(w, e, s##r##3); \
  }
#define POSENC_STORE_SUMS(r)                                                           \
  if constexpr ((r) < kRows) {                                                         \
    finish(r, 0, s##r##0), finish(r, n, s##r##1);                                      \
    if constexpr (kVectors == 4) finish(r, 2 * n, s##r##2), finish(r, 3 * n, s##r##3); \
  }
// sums = sums · rescale + Σ weight[j] · v[j], two or four vectors of the block at a time.
template <int kRows, int kVectors, class Rows> HWY_INLINE void add_q8_tile(const Q8Sums& job, const Rows& values) {
  const DF d;
  const std::int64_t n = lanes(), passes = Q8Block::kElements / (kVectors * n);
  const float* HWY_RESTRICT weights = job.weights;
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    const std::int64_t i = pass * kVectors * n;
    POSENC_REPEAT_8(POSENC_ZERO_SUMS)
    for (std::int64_t j = 0; j < job.count; ++j) {
      const Q8Block* HWY_RESTRICT block = static_cast<const Q8Block*>(values[j]) + job.block;
      // the passes share the lines, which would wait for each other if they were fetched one after another
      if (job.fetches && (j & (passes - 1)) == pass) fetch_later<1>(block, values.ahead_of(j));
      const VF a = numbers_of(d, block, i), b = numbers_of(d, block, i + n);
      const VF c = kVectors == 4 ? numbers_of(d, block, i + 2 * n) : a;
      const VF e = kVectors == 4 ? numbers_of(d, block, i + 3 * n) : b;
      POSENC_REPEAT_8(POSENC_ADD_VALUES)
    }
    const auto finish = [&](std::int64_t r, std::int64_t at, VF sum) HWY_ATTR {
      float* const to = job.sums + r * job.stride + i + at;
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to), hn::Set(d, job.rescale[r]), sum), d, to);
    };
    POSENC_REPEAT_8(POSENC_STORE_SUMS)
  }
}
#undef POSENC_ZERO_SUMS
#undef POSENC_ADD_VALUES
#undef POSENC_STORE_SUMS

// As many rows as whole tiles have, of the `rows` that are left. With four vectors where registers suffice, and a block has them.
template <int kRows, class Rows>
HWY_INLINE std::int64_t add_q8_tiles(Q8Sums& job, std::int64_t rows, const Rows& values) {
  for (; rows >= kRows; rows -= kRows) {
    if (kRows * 4 <= 2 * kRowsAtOnce && 4 * lanes() <= Q8Block::kElements) {
      add_q8_tile<kRows, 4>(job, values);
    } else {
      add_q8_tile<kRows, 2>(job, values);
    }
    job.weights += kRows * kDecodeStep, job.rescale += kRows, job.sums += kRows * job.stride;
    job.fetches = false;
  }
  return rows;
}
// sums[r] = sums[r] · rescale[r] + Σ weight[r, j] · v[j] for `count` values, at most kDecodeStep. `is_first`: as for add_rows_4.
template <class Rows> HWY_INLINE void add_q8_rows(const float* HWY_RESTRICT weights, std::int64_t stride,
                                                  std::int64_t rows, const Rows& values, std::int64_t count,
                                                  std::int64_t features, const float* HWY_RESTRICT rescale,
                                                  bool is_first, float* HWY_RESTRICT sums) {
  constexpr std::int64_t kMost = 16;  // rows whose weights are scaled at the same time
  HWY_ALIGN float scales[kDecodeStep];
  HWY_ALIGN float scaled[kMost * kDecodeStep];
  const DF d;
  for (std::int64_t block = 0; block < features / Q8Block::kElements; ++block) {
    load_scales(values, count, block, scales);
    for (std::int64_t begin = 0; begin < rows; begin += kMost) {
      std::int64_t some = std::min(kMost, rows - begin);
      for (std::int64_t r = 0; r < some; ++r) {
        for (std::int64_t j = 0; j < count; j += lanes()) {
          const VF w = hn::LoadU(d, weights + (begin + r) * stride + j);
          hn::Store(hn::Mul(w, hn::Load(d, scales + j)), d, scaled + r * kDecodeStep + j);
        }
      }
      float* const to = sums + begin * features + block * Q8Block::kElements;
      Q8Sums job{scaled, block, count, rescale + begin, is_first && begin == 0, to, features};
      if constexpr (kRowsAtOnce == 8) some = add_q8_tiles<8>(job, some, values);
      some = add_q8_tiles<4>(job, some, values);
      some = add_q8_tiles<3>(job, some, values);
      some = add_q8_tiles<2>(job, some, values);
      add_q8_tiles<1>(job, some, values);
    }
  }
}
// As for other types, of one row.
template <class V, class Rows>
requires std::is_same_v<V, Q8Block> HWY_INLINE void add_rows(const float* HWY_RESTRICT weights, const Rows& values,
                                                             std::int64_t count, std::int64_t features, float rescale,
                                                             float* HWY_RESTRICT sums) {
  add_q8_rows(weights, 0, 1, values, count, features, &rescale, true, sums);
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
