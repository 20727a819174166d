// The innermost loops of rotate, compiled once per SIMD target.

#if defined(POSENC_ROTATE_GROUPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_ROTATE_GROUPS_INL_H
#undef POSENC_ROTATE_GROUPS_INL_H
#else
#define POSENC_ROTATE_GROUPS_INL_H
#endif

#include "kernels/cpu/fetch.h"
#include "kernels/cpu/rotate_16-inl.h"
#include "kernels/cpu/rotate_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows whose first `pairs` fill groups. Kept separate from everything else: with a call in its loop, or more values
// in registers, it is a tenth slower.
template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_NOINLINE void rotate_groups(const Run<T, W>& run, std::int64_t pairs) {
  const Run<T, W> r = run;  // a copy that no store can alias
  const std::int64_t group = pairs_in_group<T, W>();
  const std::int64_t read_step = (kReadAlternating ? 2 : 1) * group, write_step = (kWriteAlternating ? 2 : 1) * group;
  for (std::int64_t n = 0; n < r.rows.count; ++n) {
    const T *x0 = r.x + n * r.rows.x, *x1 = x0 + r.read_apart;
    T *out0 = r.out + n * r.rows.out, *out1 = out0 + r.write_apart;
    const W* HWY_RESTRICT c = r.cosines + n * r.rows.table;
    const W* HWY_RESTRICT s = r.sines + n * r.rows.table;
    // Advances pointers: the fewer instructions between two cache lines, the more lines are in flight.
    const T* on_the_way = x0;
    for (const W* const end = c + pairs; c != end; c += group, s += group, on_the_way += 2 * group) {
      fetch_ahead(on_the_way, 2 * group, r.ahead);
      rotate_group<kReadAlternating, kWriteAlternating>(out0, out1, x0, x1, c, s);
      x0 += read_step, x1 += read_step;
      out0 += write_step, out1 += write_step;
    }
  }
}

template <bool kApart, int kRows, class T, class W>
HWY_NOINLINE void rotate_groups_halves(const Run<T, W>& run, std::int64_t first, std::int64_t last,
                                       std::int64_t pairs) {
  const Run<T, W> r = run;
  const std::int64_t group = pairs_in_group<T, W>();
  for (std::int64_t n = first; n < last; n += kRows) {
    const T *x0 = r.x + n * r.rows.x, *x1 = x0 + r.read_apart;
    T *out0 = r.out + n * r.rows.out, *out1 = out0 + r.write_apart;
    const W* HWY_RESTRICT c = r.cosines + n * r.rows.table;
    const W* HWY_RESTRICT s = r.sines + n * r.rows.table;
    const T *on_the_way = x0, *out_on_the_way = out0;
    for (const W* const end = c + pairs; c != end; c += group, s += group) {
      for (int row = 0; row < kRows; ++row) {
        fetch_rows<kApart>(r, on_the_way + row * r.rows.x, out_on_the_way + row * r.rows.out, 2 * group);
      }
      on_the_way += 2 * group, out_on_the_way += 2 * group;
      rotate_group_halves<kRows>(out0, out1, r.rows.out, x0, x1, r.rows.x, c, s);
      x0 += group, x1 += group;
      out0 += group, out1 += group;
    }
  }
}

#if HWY_TARGET != HWY_SCALAR

// Half a group of each row, from `pair` on: with AVX-512, all of a head of 64 features.
template <bool kApart, bool kAlternating, class T, class W>
HWY_NOINLINE void rotate_half_groups(const Run<T, W>& run, std::int64_t pair) {
  const Run<T, W> r = run;
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t start = kAlternating ? 2 * pair : pair;
  for (std::int64_t n = 0; n < r.rows.count; ++n) {
    const T* const x = r.x + n * r.rows.x + start;
    T* const out = r.out + n * r.rows.out + start;
    const W* const c = r.cosines + n * r.rows.table + start;
    const W* const s = r.sines + n * r.rows.table + start;
    fetch_rows<kApart>(r, r.x + n * r.rows.x + 2 * pair, r.out + n * r.rows.out + 2 * pair, 4 * lanes);
    if constexpr (kAlternating) {
      rotate_half_group_doubled<1>(out, r.rows.out, x, r.rows.x, c, s);
    } else {
      hn::Vec<decltype(d)> a0, b0, a1, b1;
      load_pairs<false>(d, x, x + r.read_apart, a0, b0);
      load_pairs<false>(d, x + lanes, x + r.read_apart + lanes, a1, b1);
      rotate_pair(d, a0, b0, c, s);
      rotate_pair(d, a1, b1, c + lanes, s + lanes);
      store_as(d, a0, as_stored(out));
      store_as(d, a1, as_stored(out + lanes));
      store_as(d, b0, as_stored(out + r.write_apart));
      store_as(d, b1, as_stored(out + r.write_apart + lanes));
    }
  }
}

#endif

#if POSENC_NATIVE_16

// Eight pairs of a row, as read and as rotated.
template <bool kAlternating, class T> HWY_INLINE void read_eight(const T* x, std::int64_t apart, Eight& e) {
  widen<T>(load_bits(x), e.a0, e.a1);
  widen<T>(load_bits(x + (kAlternating ? 8 : apart)), e.b0, e.b1);
}
template <bool kAlternating> HWY_INLINE void rotate_eight(Eight& e, const float* c, const float* s) {
  const D32 d;
  if constexpr (kAlternating) {
    e.a0 = rotated_doubled(d, e.a0, hn::LoadU(d, c), hn::LoadU(d, s));
    e.a1 = rotated_doubled(d, e.a1, hn::LoadU(d, c + 4), hn::LoadU(d, s + 4));
    e.b0 = rotated_doubled(d, e.b0, hn::LoadU(d, c + 8), hn::LoadU(d, s + 8));
    e.b1 = rotated_doubled(d, e.b1, hn::LoadU(d, c + 12), hn::LoadU(d, s + 12));
  } else {
    rotate_pair(d, e.a0, e.b0, c, s);
    rotate_pair(d, e.a1, e.b1, c + 4, s + 4);
  }
}

// Two rows at a time that share their cosines and sines; `pairs` of each, a multiple of 16.
template <bool kAlternating, IsNative16 T>
POSENC_NATIVE_16_ATTRIBUTE HWY_NOINLINE void rotate_groups_in_steps(const Run<T, float>& run, std::int64_t rows,
                                                                    std::int64_t pairs) {
  const Run<T, float> r = run;
  constexpr std::int64_t kFeatures = kAlternating ? 2 : 1;  // elements per pair in a row, and in a table
  const D32 d;
  const V16 one = one_in_f16();
  // The first eight pairs of both rows are rotated while the next are read.
  Eight rotated, wide, next_rotated, next_wide;
  read_eight<kAlternating>(r.x, r.read_apart, rotated);
  read_eight<kAlternating>(r.x + r.rows.x, r.read_apart, next_rotated);
  rotate_eight<kAlternating>(rotated, r.cosines, r.sines);
  rotate_eight<kAlternating>(next_rotated, r.cosines, r.sines);
  read_eight<kAlternating>(r.x + 8 * kFeatures, r.read_apart, wide);
  read_eight<kAlternating>(r.x + r.rows.x + 8 * kFeatures, r.read_apart, next_wide);
  for (std::int64_t n = 0; n < rows; n += 2) {
    const T* x = r.x + n * r.rows.x;
    T* out = r.out + n * r.rows.out;
    const T* on_the_way = x;
    // After the last row, the last is read again without being used.
    const T* const next_rows = n + 2 < rows ? x + 2 * r.rows.x : x;
    for (std::int64_t pair = 0; pair < pairs; pair += 16, on_the_way += 32) {
      fetch_ahead(on_the_way, 32, r.ahead);
      fetch_ahead(on_the_way + r.rows.x, 32, r.ahead);
      const std::int64_t after = pair + 16 < pairs ? pair + 16 : 0;
      const auto step = [&](std::int64_t to, std::int64_t angle, const T* from) {
        const float *c = r.cosines + kFeatures * angle, *s = r.sines + kFeatures * angle;
        T *out0 = out + kFeatures * to, *next_out0 = out0 + r.rows.out;
        const T* next_from = from + r.rows.x;
        if constexpr (kAlternating) {
          write_rotate_read_doubled<T>(out0, rotated, wide, c, s, from, one);
          write_rotate_read_doubled<T>(next_out0, next_rotated, next_wide, c, s, next_from, one);
        } else {
          const V32 c0 = hn::LoadU(d, c), c1 = hn::LoadU(d, c + 4), s0 = hn::LoadU(d, s), s1 = hn::LoadU(d, s + 4);
          write_rotate_read<T>(out0, out0 + r.write_apart, rotated, wide, c0, c1, s0, s1, from, from + r.read_apart,
                               one);
          write_rotate_read<T>(next_out0, next_out0 + r.write_apart, next_rotated, next_wide, c0, c1, s0, s1,
                               next_from, next_from + r.read_apart, one);
        }
      };
      const T* ahead = (after != 0 ? x : next_rows) + kFeatures * after;
      step(pair, pair + 8, ahead);
      step(pair + 8, after, ahead + 8 * kFeatures);
    }
  }
}

#else
template <bool kAlternating, IsNative16 T>
void rotate_groups_in_steps(const Run<T, float>& run, std::int64_t rows, std::int64_t pairs);  // never called
#endif

template <bool kApart, int kRows, class T, class W>
HWY_NOINLINE void rotate_groups_doubled(const Run<T, W>& run, std::int64_t first, std::int64_t last,
                                        std::int64_t pairs) {
  const Run<T, W> r = run;
  const std::int64_t group = 2 * pairs_in_group<T, W>();
  for (std::int64_t n = first; n < last; n += kRows) {
    const T* x = r.x + n * r.rows.x;
    T* out = r.out + n * r.rows.out;
    const W* HWY_RESTRICT c = r.cosines + n * r.rows.table;
    const W* HWY_RESTRICT s = r.sines + n * r.rows.table;
    for (const W* const end = c + 2 * pairs; c != end; c += group, s += group, x += group, out += group) {
      for (int row = 0; row < kRows; ++row) fetch_rows<kApart>(r, x + row * r.rows.x, out + row * r.rows.out, group);
      rotate_group_doubled<kRows>(out, r.rows.out, x, r.rows.x, c, s);
    }
  }
}

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
