#include "kernels/cpu/rotate_rows.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rotate_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/convert-inl.h"
#include "numerics/narrow.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As many pairs as a vector has lanes, from pair i on.
template <bool kAlternating, class D, class T>
HWY_INLINE void load_pairs(D d, const T* x, std::int64_t i, std::int64_t apart, hn::Vec<D>& a, hn::Vec<D>& b) {
  if constexpr (kAlternating) {
    load_alternating(d, x + 2 * i, a, b);
  } else {
    a = load_as(d, x + i);
    b = load_as(d, x + i + apart);
  }
}
template <bool kAlternating, class D, class T>
HWY_INLINE void store_pairs(D d, hn::Vec<D> a, hn::Vec<D> b, T* out, std::int64_t i, std::int64_t apart) {
  if constexpr (kAlternating) {
    store_alternating(d, a, b, out + 2 * i);
  } else {
    store_as(d, a, out + i);
    store_as(d, b, out + i + apart);
  }
}

// Products and sums, not fused: the same numbers on every machine, and those of engines that do one after the other.
template <class D, class W>
HWY_INLINE void turn(D d, hn::Vec<D>& a, hn::Vec<D>& b, const W* cosines, const W* sines) {
  const auto c = hn::LoadU(d, cosines), s = hn::LoadU(d, sines);
  const auto turned = hn::Sub(hn::Mul(a, c), hn::Mul(b, s));
  b = hn::Add(hn::Mul(b, c), hn::Mul(a, s));
  a = turned;
}

template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_INLINE void turn_block(const RotateRows<T, W>& r, T* out, const T* x, const W* HWY_RESTRICT c,
                           const W* HWY_RESTRICT s) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  // Two vectors of pairs at a time: a store loop must be unrolled to reach the memory's speed.
  for (; i + 2 * lanes <= r.pairs; i += 2 * lanes) {
    hn::Vec<decltype(d)> a0, b0, a1, b1;
    load_pairs<kReadAlternating>(d, x, i, r.read.apart, a0, b0);
    load_pairs<kReadAlternating>(d, x, i + lanes, r.read.apart, a1, b1);
    turn(d, a0, b0, c + i, s + i);
    turn(d, a1, b1, c + i + lanes, s + i + lanes);
    store_pairs<kWriteAlternating>(d, a0, b0, out, i, r.write.apart);
    store_pairs<kWriteAlternating>(d, a1, b1, out, i + lanes, r.write.apart);
  }
  for (; i < r.pairs; ++i) {
    const T* from = x + i * r.read.step;
    T* to = out + i * r.write.step;
    const W u = static_cast<W>(numerics::widen(from[0])), v = static_cast<W>(numerics::widen(from[r.read.apart]));
    const W us = u * s[i], vs = v * s[i], uc = u * c[i], vc = v * c[i];
    to[0] = numerics::narrow<T>(static_cast<double>(uc - vs));
    to[r.write.apart] = numerics::narrow<T>(static_cast<double>(vc + us));
  }
}

template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_INLINE void turn_rows(const RotateRows<T, W>& rows) {
  const RotateRows<T, W> r = rows;  // a copy that no store can alias
  for (std::int64_t o = 0; o < r.outer.count; ++o) {
    for (std::int64_t n = 0; n < r.inner.count; ++n) {
      T* out = r.out + o * r.outer.out + n * r.inner.out;
      const T* x = r.x + o * r.outer.x + n * r.inner.x;
      const std::int64_t table = o * r.outer.table + n * r.inner.table;
      for (std::int64_t block = 0; block < r.blocks; ++block) {
        const T* from = x + 2 * block * r.pairs;
        if (r.scratch != nullptr) {
          std::memcpy(r.scratch, from, static_cast<std::size_t>(2 * r.pairs) * sizeof(T));
          from = r.scratch;
        }
        turn_block<kReadAlternating, kWriteAlternating>(r, out + 2 * block * r.pairs, from,
                                                        r.cosines + table + block * r.pairs,
                                                        r.sines + table + block * r.pairs);
      }
    }
  }
}

// Pairs either alternate (step 2) or stand side by side in two runs (step 1).
template <class T, class W> HWY_INLINE void turn_all(const RotateRows<T, W>& rows) {
  if (rows.read.step == 1) {
    rows.write.step == 1 ? turn_rows<false, false>(rows) : turn_rows<false, true>(rows);
  } else {
    rows.write.step == 1 ? turn_rows<true, false>(rows) : turn_rows<true, true>(rows);
  }
}
void turn_f32(const RotateRows<float, float>& rows) { turn_all(rows); }
void turn_f64(const RotateRows<double, double>& rows) { turn_all(rows); }
void turn_f16(const RotateRows<Half, float>& rows) { turn_all(rows); }
void turn_bf16(const RotateRows<BFloat16, float>& rows) { turn_all(rows); }

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::kernels::cpu {

HWY_EXPORT(turn_f32);
HWY_EXPORT(turn_f64);
HWY_EXPORT(turn_f16);
HWY_EXPORT(turn_bf16);

void rotate_rows(const RotateRows<float, float>& rows) noexcept { HWY_DYNAMIC_DISPATCH(turn_f32)(rows); }
void rotate_rows(const RotateRows<double, double>& rows) noexcept { HWY_DYNAMIC_DISPATCH(turn_f64)(rows); }
void rotate_rows(const RotateRows<Half, float>& rows) noexcept { HWY_DYNAMIC_DISPATCH(turn_f16)(rows); }
void rotate_rows(const RotateRows<BFloat16, float>& rows) noexcept { HWY_DYNAMIC_DISPATCH(turn_bf16)(rows); }

}  // namespace posenc::kernels::cpu
#endif
