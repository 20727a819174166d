// Groups of pairs that fill whole vectors, as rotate uses them; compiled once per SIMD target.

#if defined(POSENC_ROTATE_PAIRS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_ROTATE_PAIRS_INL_H
#undef POSENC_ROTATE_PAIRS_INL_H
#else
#define POSENC_ROTATE_PAIRS_INL_H
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "kernels/cpu/convert-inl.h"
#include "kernels/cpu/fetch.h"
#include "kernels/cpu/native_16-inl.h"
#include "kernels/cpu/rotate_rows.h"
#include "numerics/narrow.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One block of features in every row of a loop.
template <class T, class W> struct Run {
  T* out;
  const T* x;
  const W *cosines, *sines;
  std::int64_t pairs, read_apart, write_apart;
  RotateLoop rows;
  T* scratch;
  std::int64_t ahead;
};

// Prefetches what comes after so many elements of a row. Whether out is apart is known to compilers: a branch would cost
// rotations in place a twentieth.
template <bool kApart, class T, class W>
HWY_INLINE void fetch_rows(const Run<T, W>& r, const T* x, const T* out, std::int64_t elements) {
  fetch_ahead(x, elements, r.ahead);
  if constexpr (kApart) fetch_ahead(out, elements, kFetchOutAhead);
}

template <class T>
concept IsWrapped = requires(T x) {
  x.value;
};  // 16-bit types with their own way of rounding
template <class W, class T> HWY_INLINE W element(T x) {
  if constexpr (IsWrapped<T>) {
    return static_cast<W>(numerics::widen(x.value));
  } else {
    return static_cast<W>(numerics::widen(x));
  }
}
template <class T, class W> HWY_INLINE void set_element(T& out, W value) {
  if constexpr (IsWrapped<T>) {
    out.value = numerics::narrow<decltype(out.value)>(static_cast<double>(value));
  } else {
    out = numerics::narrow<T>(static_cast<double>(value));
  }
}

template <class T, class W> HWY_INLINE std::int64_t pairs_in_group() {
  return 4 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<W>()));
}

// Products and sums are not fused: the same numbers on every machine, and those of engines that compute one after the
// other.
template <class V> HWY_INLINE void rotate_pair(V& a, V& b, V c, V s) {
  const V rotated = hn::Sub(hn::Mul(a, c), hn::Mul(b, s));
  b = hn::Add(hn::Mul(b, c), hn::Mul(a, s));
  a = rotated;
}
template <class D, class W> HWY_INLINE void rotate_pair(D d, hn::Vec<D>& a, hn::Vec<D>& b, const W* c, const W* s) {
  rotate_pair(a, b, hn::LoadU(d, c), hn::LoadU(d, s));
}

template <class T> HWY_INLINE auto* as_stored(T* x) {
  if constexpr (IsNative16<std::remove_const_t<T>>) {
    return &x->value;
  } else {
    return x;
  }
}

template <bool kAlternating, class D, class T>
HWY_INLINE void load_pairs(D d, const T* first, const T* second, hn::Vec<D>& a, hn::Vec<D>& b) {
  if constexpr (kAlternating) {
    load_alternating(d, as_stored(first), a, b);
  } else {
    a = load_as(d, as_stored(first));
    b = load_as(d, as_stored(second));
  }
}

// Adjacent vectors are stored together: memory is fastest with whole cache lines.
template <class D, class T>
HWY_INLINE void store_run(D d, hn::Vec<D> v0, hn::Vec<D> v1, hn::Vec<D> v2, hn::Vec<D> v3, T* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  store_as(d, v0, as_stored(out));
  store_as(d, v1, as_stored(out + lanes));
  store_as(d, v2, as_stored(out + 2 * lanes));
  store_as(d, v3, as_stored(out + 3 * lanes));
}

// Four vectors of pairs, converted from one layout to the other.
template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_INLINE void rotate_group(T* out0, T* out1, const T* x0, const T* x1, const W* c, const W* s) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t step = kReadAlternating ? 2 * lanes : lanes;
  hn::Vec<decltype(d)> a0, b0, a1, b1, a2, b2, a3, b3;
  load_pairs<kReadAlternating>(d, x0, x1, a0, b0);
  load_pairs<kReadAlternating>(d, x0 + step, x1 + step, a1, b1);
  load_pairs<kReadAlternating>(d, x0 + 2 * step, x1 + 2 * step, a2, b2);
  load_pairs<kReadAlternating>(d, x0 + 3 * step, x1 + 3 * step, a3, b3);
  rotate_pair(d, a0, b0, c, s);
  rotate_pair(d, a1, b1, c + lanes, s + lanes);
  rotate_pair(d, a2, b2, c + 2 * lanes, s + 2 * lanes);
  rotate_pair(d, a3, b3, c + 3 * lanes, s + 3 * lanes);
  if constexpr (kWriteAlternating) {
    store_alternating(d, a0, b0, as_stored(out0));
    store_alternating(d, a1, b1, as_stored(out0 + 2 * lanes));
    store_alternating(d, a2, b2, as_stored(out0 + 4 * lanes));
    store_alternating(d, a3, b3, as_stored(out0 + 6 * lanes));
  } else {
    store_run(d, a0, a1, a2, a3, out0);
    store_run(d, b0, b1, b2, b3, out1);
  }
}

// The same for pairs that stay in two runs, in as many rows as share their cosines and sines.
template <int kRows, class T, class W>
HWY_INLINE void rotate_group_halves(T* out0, T* out1, std::int64_t out_step, const T* x0, const T* x1,
                                    std::int64_t x_step, const W* c, const W* s) {
  for (int row = 0; row < kRows; ++row, x0 += x_step, x1 += x_step, out0 += out_step, out1 += out_step) {
    rotate_group<false, false>(out0, out1, x0, x1, c, s);
  }
}

#if HWY_TARGET == HWY_SCALAR

template <int kRows, class T, class W> HWY_INLINE void rotate_group_doubled(T* out, std::int64_t out_step, const T* x,
                                                                            std::int64_t x_step, const W* c,
                                                                            const W* s) {
  for (int row = 0; row < kRows; ++row, x += x_step, out += out_step) {
    for (std::int64_t i = 0; i < 8; i += 2) {
      const W a = element<W>(x[i]), b = element<W>(x[i + 1]);
      const W ac = a * c[i], bs = b * s[i], bc = b * c[i], as = a * s[i + 1];
      set_element(out[i], ac + bs);
      set_element(out[i + 1], bc + as);
    }
  }
}

#else

// A vector of alternating features, a b a b, times c c and −s s: a·c + b·(−s) and b·c + a·s.
template <class D> HWY_INLINE hn::Vec<D> rotated_doubled(D d, hn::Vec<D> x, hn::Vec<D> c, hn::Vec<D> s) {
  return hn::Add(hn::Mul(x, c), hn::Mul(hn::Reverse2(d, x), s));
}

// Half a group, in as many rows as share their cosines and sines.
template <int kRows, class T, class W> HWY_INLINE void rotate_half_group_doubled(T* out, std::int64_t out_step,
                                                                                 const T* x, std::int64_t x_step,
                                                                                 const W* c, const W* s) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto c0 = hn::LoadU(d, c), c1 = hn::LoadU(d, c + lanes), c2 = hn::LoadU(d, c + 2 * lanes);
  const auto s0 = hn::LoadU(d, s), s1 = hn::LoadU(d, s + lanes), s2 = hn::LoadU(d, s + 2 * lanes);
  const auto c3 = hn::LoadU(d, c + 3 * lanes), s3 = hn::LoadU(d, s + 3 * lanes);
  for (int row = 0; row < kRows; ++row, x += x_step, out += out_step) {
    const auto v0 = rotated_doubled(d, load_as(d, as_stored(x)), c0, s0);
    const auto v1 = rotated_doubled(d, load_as(d, as_stored(x + lanes)), c1, s1);
    const auto v2 = rotated_doubled(d, load_as(d, as_stored(x + 2 * lanes)), c2, s2);
    const auto v3 = rotated_doubled(d, load_as(d, as_stored(x + 3 * lanes)), c3, s3);
    store_run(d, v0, v1, v2, v3, out);
  }
}
template <int kRows, class T, class W> HWY_INLINE void rotate_group_doubled(T* out, std::int64_t out_step, const T* x,
                                                                            std::int64_t x_step, const W* c,
                                                                            const W* s) {
  const auto half = 4 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<W>()));
  rotate_half_group_doubled<kRows>(out, out_step, x, x_step, c, s);
  rotate_half_group_doubled<kRows>(out + half, out_step, x + half, x_step, c + half, s + half);
}

#endif

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
