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

// As many pairs as a vector has lanes.
template <bool kAlternating, class D, class T>
HWY_INLINE void load_pairs(D d, const T* first, const T* second, hn::Vec<D>& a, hn::Vec<D>& b) {
  if constexpr (kAlternating) {
    load_alternating(d, first, a, b);
  } else {
    a = load_as(d, first);
    b = load_as(d, second);
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

// Four vectors of pairs. What lies side by side is stored in one go: memory takes whole cache lines best.
template <bool kReadAlternating, bool kWriteAlternating, class D, class T, class W>
HWY_INLINE void turn_four(D d, T* out0, T* out1, const T* x0, const T* x1, const W* c, const W* s) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t step = kReadAlternating ? 2 * lanes : lanes;
  hn::Vec<D> a0, b0, a1, b1, a2, b2, a3, b3;
  load_pairs<kReadAlternating>(d, x0, x1, a0, b0);
  load_pairs<kReadAlternating>(d, x0 + step, x1 + step, a1, b1);
  load_pairs<kReadAlternating>(d, x0 + 2 * step, x1 + 2 * step, a2, b2);
  load_pairs<kReadAlternating>(d, x0 + 3 * step, x1 + 3 * step, a3, b3);
  turn(d, a0, b0, c, s);
  turn(d, a1, b1, c + lanes, s + lanes);
  turn(d, a2, b2, c + 2 * lanes, s + 2 * lanes);
  turn(d, a3, b3, c + 3 * lanes, s + 3 * lanes);
  if constexpr (kWriteAlternating) {
    store_alternating(d, a0, b0, out0);
    store_alternating(d, a1, b1, out0 + 2 * lanes);
    store_alternating(d, a2, b2, out0 + 4 * lanes);
    store_alternating(d, a3, b3, out0 + 6 * lanes);
  } else {
    store_as(d, a0, out0);
    store_as(d, a1, out0 + lanes);
    store_as(d, a2, out0 + 2 * lanes);
    store_as(d, a3, out0 + 3 * lanes);
    store_as(d, b0, out1);
    store_as(d, b1, out1 + lanes);
    store_as(d, b2, out1 + 2 * lanes);
    store_as(d, b3, out1 + 3 * lanes);
  }
}

// One block of features in every row of the inner loop.
template <class T, class W> struct Run {
  T* out;
  const T* x;
  const W *cosines, *sines;
  std::int64_t pairs, read_apart, write_apart;
  RotateLoop rows;
  T* scratch;
};

// The pairs that are left over when the groups of vectors are used up.
template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_NOINLINE void turn_rest(const Run<T, W>& r, std::int64_t first) {
  for (std::int64_t n = 0; n < r.rows.count; ++n) {
    for (std::int64_t i = first; i < r.pairs; ++i) {
      const T* from = r.x + n * r.rows.x + (kReadAlternating ? 2 * i : i);
      T* to = r.out + n * r.rows.out + (kWriteAlternating ? 2 * i : i);
      const W c = r.cosines[n * r.rows.table + i], s = r.sines[n * r.rows.table + i];
      const W u = static_cast<W>(numerics::widen(from[0])), v = static_cast<W>(numerics::widen(from[r.read_apart]));
      const W us = u * s, vs = v * s, uc = u * c, vc = v * c;
      to[0] = numerics::narrow<T>(static_cast<double>(uc - vs));
      to[r.write_apart] = numerics::narrow<T>(static_cast<double>(vc + us));
    }
  }
}

// Rows whose pairs fill groups of four vectors. Kept apart from everything else: with a call in its loop, or more to
// keep in registers, it loses a tenth of its speed.
template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_NOINLINE void turn_groups(const Run<T, W>& run, std::int64_t pairs) {
  const Run<T, W> r = run;  // a copy that no store can alias
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t read_step = (kReadAlternating ? 8 : 4) * lanes, write_step = (kWriteAlternating ? 8 : 4) * lanes;
  for (std::int64_t n = 0; n < r.rows.count; ++n) {
    const T *x0 = r.x + n * r.rows.x, *x1 = x0 + r.read_apart;
    T *out0 = r.out + n * r.rows.out, *out1 = out0 + r.write_apart;
    const W* HWY_RESTRICT c = r.cosines + n * r.rows.table;
    const W* HWY_RESTRICT s = r.sines + n * r.rows.table;
    // Pointers that move: the fewer instructions stand between two cache lines, the more of these are on their way.
    for (const W* const end = c + pairs; c != end; c += 4 * lanes, s += 4 * lanes) {
      turn_four<kReadAlternating, kWriteAlternating>(d, out0, out1, x0, x1, c, s);
      x0 += read_step, x1 += read_step;
      out0 += write_step, out1 += write_step;
    }
  }
}

template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_INLINE void turn_run(const Run<T, W>& r) {
  const hn::ScalableTag<W> d;
  const auto group = 4 * static_cast<std::int64_t>(hn::Lanes(d)), whole = r.pairs / group * group;
  if (r.scratch == nullptr) {
    if (whole > 0) turn_groups<kReadAlternating, kWriteAlternating>(r, whole);
    if (whole < r.pairs) turn_rest<kReadAlternating, kWriteAlternating>(r, whole);
    return;
  }
  // Pairs that do not return to their places would overwrite others: each row is read from a copy.
  Run<T, W> row = r;
  row.rows = {};
  row.x = r.scratch;
  row.scratch = nullptr;
  for (std::int64_t n = 0; n < r.rows.count; ++n) {
    std::memcpy(r.scratch, r.x + n * r.rows.x, static_cast<std::size_t>(2 * r.pairs) * sizeof(T));
    row.out = r.out + n * r.rows.out;
    row.cosines = r.cosines + n * r.rows.table;
    row.sines = r.sines + n * r.rows.table;
    if (whole > 0) turn_groups<kReadAlternating, kWriteAlternating>(row, whole);
    if (whole < r.pairs) turn_rest<kReadAlternating, kWriteAlternating>(row, whole);
  }
}

template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_INLINE void turn_rows(const RotateRows<T, W>& r) {
  for (std::int64_t o = 0; o < r.outer.count; ++o) {
    for (std::int64_t block = 0; block < r.blocks; ++block) {
      const std::int64_t pair = block * r.pairs, table = o * r.outer.table + pair;
      turn_run<kReadAlternating, kWriteAlternating>(
          Run<T, W>{r.out + o * r.outer.out + 2 * pair, r.x + o * r.outer.x + 2 * pair, r.cosines + table,
                    r.sines + table, r.pairs, r.read.apart, r.write.apart, r.inner, r.scratch});
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
