// bf16 as 16-bit halves of 32-bit lanes. Elements at even places are shifted into float32, those at odd places masked,
// and both are joined after their rotation: a third of the instructions that extending and narrowing vectors take.

#if defined(POSENC_ROTATE_BF16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_ROTATE_BF16_INL_H
#undef POSENC_ROTATE_BF16_INL_H
#else
#define POSENC_ROTATE_BF16_INL_H
#endif

#include "kernels/cpu/rotate_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A scalar has no halves, and arm64 has its own code (rotate_16-inl.h).
#undef POSENC_ROTATE_BY_WORDS
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_NEON
#define POSENC_ROTATE_BY_WORDS 1

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using FloatsV = hn::Vec<Floats>;
using WordsV = hn::Vec<Words>;

HWY_INLINE FloatsV even_elements(WordsV x) { return hn::BitCast(Floats(), hn::ShiftLeft<16>(x)); }
HWY_INLINE FloatsV odd_elements(WordsV x) { return hn::BitCast(Floats(), hn::And(x, hn::Set(Words(), 0xFFFF0000u))); }

// The upper half of each lane is rounded to nearest, ties to even; the lower half is not. Setting the lowest bit where
// the upper half is odd lets ties decide. NaNs have a lower half of 0 here (tables and inputs ensure that), so nothing
// is carried into the sign.
HWY_INLINE WordsV rounded_upper_half(FloatsV value) {
  const Words d;
  const auto bits = hn::BitCast(d, value);
  const auto to_even = hn::OrAnd(bits, hn::ShiftRight<16>(bits), hn::Set(d, 1));
  return hn::Add(to_even, hn::Set(d, 0x7FFF));
}
HWY_INLINE WordsV joined(FloatsV even, FloatsV odd) {
  const hn::Repartition<std::uint16_t, Words> d16;
  const auto lower = hn::BitCast(d16, hn::ShiftRight<16>(rounded_upper_half(even)));
  return hn::BitCast(Words(), hn::OddEven(hn::BitCast(d16, rounded_upper_half(odd)), lower));
}

// The cosines and sines of two vectors of pairs. Those of alternating features are stored twice, the second sine with
// its true sign; the others are separated like their features.
template <bool kAlternating>
HWY_INLINE void load_angles(const float* c, const float* s, FloatsV& c0, FloatsV& c1, FloatsV& s0, FloatsV& s1) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  const auto c_low = hn::LoadU(d, c), c_high = hn::LoadU(d, c + lanes);
  const auto s_low = hn::LoadU(d, s), s_high = hn::LoadU(d, s + lanes);
  c0 = hn::ConcatEven(d, c_high, c_low);
  if constexpr (kAlternating) {
    s0 = hn::ConcatOdd(d, s_high, s_low);
    c1 = hn::ConcatEven(d, hn::LoadU(d, c + 3 * lanes), hn::LoadU(d, c + 2 * lanes));
    s1 = hn::ConcatOdd(d, hn::LoadU(d, s + 3 * lanes), hn::LoadU(d, s + 2 * lanes));
  } else {
    s0 = hn::ConcatEven(d, s_high, s_low);
    c1 = hn::ConcatOdd(d, c_high, c_low);
    s1 = hn::ConcatOdd(d, s_high, s_low);
  }
}

// Two vectors of features: first and second elements, or alternating.
template <bool kAlternating> HWY_INLINE void rotate_words(BFloat16* out0, BFloat16* out1, const BFloat16* x0,
                                                          const BFloat16* x1, FloatsV c0, FloatsV c1, FloatsV s0,
                                                          FloatsV s1) {
  const auto first = load_words(Words(), x0), second = load_words(Words(), x1);
  auto even0 = even_elements(first), odd0 = odd_elements(first);
  auto even1 = even_elements(second), odd1 = odd_elements(second);
  rotate_pair(even0, kAlternating ? odd0 : even1, c0, s0);
  rotate_pair(kAlternating ? even1 : odd0, odd1, c1, s1);
  store_words(Words(), joined(even0, odd0), out0);
  store_words(Words(), joined(even1, odd1), out1);
}

// Pairs that fill 2 · kTwos vectors, from `pair` on, in rows with the same cosines and sines.
template <bool kApart, int kTwos, bool kAlternating>
HWY_INLINE void rotate_words_of_rows(const Run<BFloat16, float>& r, std::int64_t first, std::int64_t last,
                                     std::int64_t pair) {
  const auto pairs = 2 * static_cast<std::int64_t>(hn::Lanes(Floats()));  // of two vectors
  constexpr std::int64_t kStep = kAlternating ? 2 : 1;  // elements per pair in a row, and in a table
  const std::int64_t read_apart = kAlternating ? pairs : r.read_apart;
  const std::int64_t write_apart = kAlternating ? pairs : r.write_apart;
  const float* const c = r.cosines + first * r.rows.table + kStep * pair;
  const float* const s = r.sines + first * r.rows.table + kStep * pair;
  FloatsV c0, c1, c2, c3, s0, s1, s2, s3;
  load_angles<kAlternating>(c, s, c0, c1, s0, s1);
  if constexpr (kTwos == 2) load_angles<kAlternating>(c + kStep * pairs, s + kStep * pairs, c2, c3, s2, s3);
  const BFloat16* x = r.x + first * r.rows.x + kStep * pair;
  BFloat16* out = r.out + first * r.rows.out + kStep * pair;
  const std::int64_t done = (2 - kStep) * pair;  // of the elements on the way, which are 2 for each pair
  for (std::int64_t n = first; n < last; ++n, x += r.rows.x, out += r.rows.out) {
    fetch_rows<kApart>(r, x + done, out + done, 2 * kTwos * pairs);
    rotate_words<kAlternating>(out, out + write_apart, x, x + read_apart, c0, c1, s0, s1);
    if constexpr (kTwos == 2) {
      const BFloat16* const more = x + kStep * pairs;
      BFloat16* const more_out = out + kStep * pairs;
      rotate_words<kAlternating>(more_out, more_out + write_apart, more, more + read_apart, c2, c3, s2, s3);
    }
  }
}

// Pairs that stay in place; returns the first that is not done. Rows that share their cosines and sines keep them in
// registers.
template <bool kApart, bool kAlternating> HWY_NOINLINE std::int64_t rotate_by_words(const Run<BFloat16, float>& run) {
  const Run<BFloat16, float> r = run;  // a copy that no store can alias
  const auto pairs = 2 * static_cast<std::int64_t>(hn::Lanes(Floats()));
  const std::int64_t rows = r.rows.count, at_once = r.rows.table == 0 ? rows : 1;
  std::int64_t pair = 0;
  for (std::int64_t n = 0; n < rows; n += at_once) {
    for (pair = 0; pair + 2 * pairs <= r.pairs; pair += 2 * pairs) {
      rotate_words_of_rows<kApart, 2, kAlternating>(r, n, n + at_once, pair);
    }
    if (pair + pairs <= r.pairs) {
      rotate_words_of_rows<kApart, 1, kAlternating>(r, n, n + at_once, pair);
      pair += pairs;
    }
  }
  return pair;
}

#else
#define POSENC_ROTATE_BY_WORDS 0
#endif

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
