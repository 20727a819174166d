#include "kernels/cpu/rotate_rows.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rotate_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/convert-inl.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/rotate_bf16-inl.h"
#include "kernels/cpu/rotate_groups-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {

// Pairs of a row from `first` on, one vector at a time. If each cosine and sine is stored twice, `step` is 2, and the
// second sine is the one with its true sign. Returns the first pair that is not done.
template <bool kReadAlternating, bool kWriteAlternating, class D, class T, class W>
HWY_INLINE std::int64_t rotate_vectors(D d, const Run<T, W>& r, std::int64_t n, std::int64_t first,
                                       std::int64_t step) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = first;
  for (; i + lanes <= r.pairs; i += lanes) {
    const T* const from = r.x + n * r.rows.x + (kReadAlternating ? 2 * i : i);
    T* const to = r.out + n * r.rows.out + (kWriteAlternating ? 2 * i : i);
    const W *const c = r.cosines + n * r.rows.table + step * i, *const s = r.sines + n * r.rows.table + step * i;
    hn::Vec<D> a, b;
    load_pairs<kReadAlternating>(d, from, from + r.read_apart, a, b);
    if (step == 1) {
      rotate_pair(d, a, b, c, s);
    } else {
      hn::Vec<D> unused, cosine, sine;
      hn::LoadInterleaved2(d, c, unused, cosine);
      hn::LoadInterleaved2(d, s, unused, sine);
      rotate_pair(a, b, cosine, sine);
    }
    if constexpr (kWriteAlternating) {
      store_alternating(d, a, b, as_stored(to));
    } else {
      store_as(d, a, as_stored(to));
      store_as(d, b, as_stored(to + r.write_apart));
    }
  }
  return i;
}

// The pairs that remain after whole groups of vectors: with AVX-512's groups of 64 pairs, all of a head of 64
// features.
template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_NOINLINE void rotate_rest(const Run<T, W>& run, std::int64_t first, std::int64_t step) {
  const Run<T, W> r = run;
  for (std::int64_t n = 0; n < r.rows.count; ++n) {
    std::int64_t i = first;
#if HWY_TARGET != HWY_SCALAR
    i = rotate_vectors<kReadAlternating, kWriteAlternating>(hn::ScalableTag<W>(), r, n, i, step);
    i = rotate_vectors<kReadAlternating, kWriteAlternating>(hn::CappedTag<W, 4>(), r, n, i, step);
#endif
    for (; i < r.pairs; ++i) {
      const T* from = r.x + n * r.rows.x + (kReadAlternating ? 2 * i : i);
      T* to = r.out + n * r.rows.out + (kWriteAlternating ? 2 * i : i);
      const std::int64_t at = n * r.rows.table + step * i + (step - 1);
      const W c = r.cosines[at], s = r.sines[at];
      const W u = element<W>(from[0]), v = element<W>(from[r.read_apart]);
      const W us = u * s, vs = v * s, uc = u * c, vc = v * c;
      set_element(to[0], uc - vs);
      set_element(to[r.write_apart], vc + us);
    }
  }
}

// Pairs converted from one layout to the other.
template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_INLINE void rotate_run(const Run<T, W>& r) {
  const std::int64_t group = pairs_in_group<T, W>(), whole = r.pairs / group * group;
  if (r.scratch == nullptr) {
    if (whole > 0) rotate_groups<kReadAlternating, kWriteAlternating>(r, whole);
    if (whole < r.pairs) rotate_rest<kReadAlternating, kWriteAlternating>(r, whole, 1);
    return;
  }
  // Pairs that change places would overwrite others, so each row is read from a copy.
  Run<T, W> row = r;
  row.rows = {};
  row.x = r.scratch;
  for (std::int64_t n = 0; n < r.rows.count; ++n) {
    std::memcpy(r.scratch, r.x + n * r.rows.x, static_cast<std::size_t>(2 * r.pairs) * sizeof(T));
    row.out = r.out + n * r.rows.out;
    row.cosines = r.cosines + n * r.rows.table;
    row.sines = r.sines + n * r.rows.table;
    if (whole > 0) rotate_groups<kReadAlternating, kWriteAlternating>(row, whole);
    if (whole < r.pairs) rotate_rest<kReadAlternating, kWriteAlternating>(row, whole, 1);
  }
}

// Pairs that stay in place. Heads of one token share their cosines and sines: two heads at a time need half the
// loads. That pays if each is stored twice and in 16 bits; otherwise the loads cost less than leaving the order of
// memory.
template <bool kApart, bool kAlternating, class T, class W> HWY_INLINE void rotate_run_in_place(const Run<T, W>& r) {
#if POSENC_ROTATE_BY_WORDS
  if constexpr (std::is_same_v<T, BFloat16>) {
    const std::int64_t done = rotate_by_words<kApart, kAlternating>(r);
    if (done < r.pairs) rotate_rest<kAlternating, kAlternating>(r, done, kAlternating ? 2 : 1);
    return;
  }
#endif
  const std::int64_t group = pairs_in_group<T, W>(), whole = r.pairs / group * group;
  constexpr bool kInTwos = kAlternating || sizeof(T) == 2;
  const std::int64_t even = kInTwos && r.rows.table == 0 ? r.rows.count / 2 * 2 : 0;
  if (whole > 0 && even > 0) {
    if constexpr (IsNative16<T>) {
      rotate_groups_in_steps<kAlternating>(r, even, whole);
    } else {
      kAlternating ? rotate_groups_doubled<kApart, 2>(r, 0, even, whole)
                   : rotate_groups_halves<kApart, 2>(r, 0, even, whole);
    }
  }
  if (whole > 0 && even < r.rows.count) {
    kAlternating ? rotate_groups_doubled<kApart, 1>(r, even, r.rows.count, whole)
                 : rotate_groups_halves<kApart, 1>(r, even, r.rows.count, whole);
  }
  std::int64_t done = whole;
#if HWY_TARGET != HWY_SCALAR
  if (whole + group / 2 <= r.pairs) {
    rotate_half_groups<kApart, kAlternating>(r, whole);
    done += group / 2;
  }
#endif
  if (done < r.pairs) rotate_rest<kAlternating, kAlternating>(r, done, kAlternating ? 2 : 1);
}

// Pairs either alternate (step 2) or are in two contiguous runs (step 1).
template <class Type, class T, class W> HWY_INLINE void rotate_all(const RotateRows<T, W>& r) {
  const bool doubled = r.read.step == 2 && r.write.step == 2;
  const bool is_apart = r.out != r.x && r.ahead != 0;
  for (std::int64_t o = 0; o < r.outer.count; ++o) {
    for (std::int64_t block = 0; block < r.blocks; ++block) {
      const std::int64_t pair = block * r.pairs, table = o * r.outer.table + (doubled ? 2 : 1) * pair;
      const Run<Type, W> run{reinterpret_cast<Type*>(r.out + o * r.outer.out + 2 * pair),
                             reinterpret_cast<const Type*>(r.x + o * r.outer.x + 2 * pair),
                             r.cosines + table,
                             r.sines + table,
                             r.pairs,
                             r.read.apart,
                             r.write.apart,
                             r.inner,
                             reinterpret_cast<Type*>(r.scratch),
                             r.ahead};
      if (doubled) {
        is_apart ? rotate_run_in_place<true, true>(run) : rotate_run_in_place<false, true>(run);
      } else if (r.read.step == 1 && r.write.step == 1) {
        is_apart ? rotate_run_in_place<true, false>(run) : rotate_run_in_place<false, false>(run);
      } else {
        r.read.step == 2 ? rotate_run<true, false>(run) : rotate_run<false, true>(run);
      }
    }
  }
}
void rotate_f32(const RotateRows<float, float>& rows) { rotate_all<float>(rows); }
void rotate_f64(const RotateRows<double, double>& rows) { rotate_all<double>(rows); }
void rotate_f16(const RotateRows<Half, float>& rows) {
#if POSENC_NATIVE_16
  if (machine_multiplies_f16_long()) return rotate_all<NativeHalf>(rows);
#endif
  rotate_all<Half>(rows);
}
bool rounds_bf16_by_instruction() { return POSENC_NATIVE_16 != 0 && machine_rounds_to_bf16(); }
void rotate_bf16(const RotateRows<BFloat16, float>& rows) {
#if POSENC_NATIVE_16
  if (rounds_bf16_by_instruction()) return rotate_all<NativeBFloat16>(rows);
#endif
  rotate_all<BFloat16>(rows);
}

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::kernels::cpu {

HWY_EXPORT(rotate_f32);
HWY_EXPORT(rotate_f64);
HWY_EXPORT(rotate_f16);
HWY_EXPORT(rotate_bf16);
HWY_EXPORT(rounds_bf16_by_instruction);

void rotate_rows(const RotateRows<float, float>& rows) noexcept { HWY_DYNAMIC_DISPATCH(rotate_f32)(rows); }
void rotate_rows(const RotateRows<double, double>& rows) noexcept { HWY_DYNAMIC_DISPATCH(rotate_f64)(rows); }
void rotate_rows(const RotateRows<Half, float>& rows) noexcept { HWY_DYNAMIC_DISPATCH(rotate_f16)(rows); }
void rotate_rows(const RotateRows<BFloat16, float>& rows) noexcept { HWY_DYNAMIC_DISPATCH(rotate_bf16)(rows); }
bool rotates_any_nan_to_bf16() noexcept { return HWY_DYNAMIC_DISPATCH(rounds_bf16_by_instruction)(); }

}  // namespace posenc::kernels::cpu
#endif
