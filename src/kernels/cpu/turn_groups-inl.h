// The innermost loops of rotate, compiled once per SIMD target: groups of pairs that fill whole vectors.

#if defined(POSENC_TURN_GROUPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_TURN_GROUPS_INL_H
#undef POSENC_TURN_GROUPS_INL_H
#else
#define POSENC_TURN_GROUPS_INL_H
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/cpu/convert-inl.h"
#include "kernels/cpu/fetch.h"
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

/// bf16 on a machine that rounds to it in one instruction. Highway 1.0.3 does not know of it.
struct NativeBFloat16 {
  std::uint16_t bits;
};

template <class W, class T> HWY_INLINE W element(T x) {
  if constexpr (std::is_same_v<T, NativeBFloat16>) {
    return static_cast<W>(numerics::widen(BFloat16{x.bits}));
  } else {
    return static_cast<W>(numerics::widen(x));
  }
}
template <class T, class W> HWY_INLINE void set_element(T& out, W value) {
  if constexpr (std::is_same_v<T, NativeBFloat16>) {
    out.bits = numerics::narrow<BFloat16>(static_cast<double>(value)).bits;
  } else {
    out = numerics::narrow<T>(static_cast<double>(value));
  }
}

template <class T, class W> HWY_INLINE std::int64_t pairs_in_group() {
  return 4 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<W>()));
}

// Products and sums, not fused: the same numbers on every machine, and those of engines that do one after the other.
template <class V> HWY_INLINE void turn(V& a, V& b, V c, V s) {
  const V turned = hn::Sub(hn::Mul(a, c), hn::Mul(b, s));
  b = hn::Add(hn::Mul(b, c), hn::Mul(a, s));
  a = turned;
}
template <class D, class W> HWY_INLINE void turn(D d, hn::Vec<D>& a, hn::Vec<D>& b, const W* c, const W* s) {
  turn(a, b, hn::LoadU(d, c), hn::LoadU(d, s));
}

template <class T> HWY_INLINE auto* as_stored(T* x) {
  if constexpr (std::is_same_v<std::remove_const_t<T>, NativeBFloat16>) {
    return reinterpret_cast<std::conditional_t<std::is_const_v<T>, const BFloat16, BFloat16>*>(x);
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

// What lies side by side is stored in one go: memory takes whole cache lines best.
template <class D, class T>
HWY_INLINE void store_run(D d, hn::Vec<D> v0, hn::Vec<D> v1, hn::Vec<D> v2, hn::Vec<D> v3, T* out) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  store_as(d, v0, as_stored(out));
  store_as(d, v1, as_stored(out + lanes));
  store_as(d, v2, as_stored(out + 2 * lanes));
  store_as(d, v3, as_stored(out + 3 * lanes));
}

// Four vectors of pairs, from one layout to the other.
template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_INLINE void turn_group(T* out0, T* out1, const T* x0, const T* x1, const W* c, const W* s) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t step = kReadAlternating ? 2 * lanes : lanes;
  hn::Vec<decltype(d)> a0, b0, a1, b1, a2, b2, a3, b3;
  load_pairs<kReadAlternating>(d, x0, x1, a0, b0);
  load_pairs<kReadAlternating>(d, x0 + step, x1 + step, a1, b1);
  load_pairs<kReadAlternating>(d, x0 + 2 * step, x1 + 2 * step, a2, b2);
  load_pairs<kReadAlternating>(d, x0 + 3 * step, x1 + 3 * step, a3, b3);
  turn(d, a0, b0, c, s);
  turn(d, a1, b1, c + lanes, s + lanes);
  turn(d, a2, b2, c + 2 * lanes, s + 2 * lanes);
  turn(d, a3, b3, c + 3 * lanes, s + 3 * lanes);
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

// The same where pairs stand in two runs and stay there, in as many rows as share their cosines and sines.
template <int kRows, class T, class W>
HWY_INLINE void turn_group_halves(T* out0, T* out1, std::int64_t out_step, const T* x0, const T* x1,
                                  std::int64_t x_step, const W* c, const W* s) {
  for (int row = 0; row < kRows; ++row, x0 += x_step, x1 += x_step, out0 += out_step, out1 += out_step) {
    turn_group<false, false>(out0, out1, x0, x1, c, s);
  }
}

#if HWY_TARGET == HWY_SCALAR

template <int kRows, class T, class W> HWY_INLINE void turn_group_doubled(T* out, std::int64_t out_step, const T* x,
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

// A vector of features that alternate, a b a b, times c c and −s s: a·c + b·(−s) and b·c + a·s.
template <class D> HWY_INLINE hn::Vec<D> turned_doubled(D d, hn::Vec<D> x, hn::Vec<D> c, hn::Vec<D> s) {
  return hn::Add(hn::Mul(x, c), hn::Mul(hn::Reverse2(d, x), s));
}

// Half a group, in as many rows as share their cosines and sines.
template <int kRows, class T, class W> HWY_INLINE void turn_half_group_doubled(T* out, std::int64_t out_step,
                                                                               const T* x, std::int64_t x_step,
                                                                               const W* c, const W* s) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto c0 = hn::LoadU(d, c), c1 = hn::LoadU(d, c + lanes), c2 = hn::LoadU(d, c + 2 * lanes);
  const auto s0 = hn::LoadU(d, s), s1 = hn::LoadU(d, s + lanes), s2 = hn::LoadU(d, s + 2 * lanes);
  const auto c3 = hn::LoadU(d, c + 3 * lanes), s3 = hn::LoadU(d, s + 3 * lanes);
  for (int row = 0; row < kRows; ++row, x += x_step, out += out_step) {
    const auto v0 = turned_doubled(d, load_as(d, as_stored(x)), c0, s0);
    const auto v1 = turned_doubled(d, load_as(d, as_stored(x + lanes)), c1, s1);
    const auto v2 = turned_doubled(d, load_as(d, as_stored(x + 2 * lanes)), c2, s2);
    const auto v3 = turned_doubled(d, load_as(d, as_stored(x + 3 * lanes)), c3, s3);
    store_run(d, v0, v1, v2, v3, out);
  }
}
template <int kRows, class T, class W> HWY_INLINE void turn_group_doubled(T* out, std::int64_t out_step, const T* x,
                                                                          std::int64_t x_step, const W* c,
                                                                          const W* s) {
  const auto half = 4 * static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<W>()));
  turn_half_group_doubled<kRows>(out, out_step, x, x_step, c, s);
  turn_half_group_doubled<kRows>(out + half, out_step, x + half, x_step, c + half, s + half);
}

#endif

// clang 14's assembler does not know the instruction; its programs round by additions.
#undef POSENC_NATIVE_BF16
#if HWY_TARGET == HWY_NEON && !defined(__clang__)
#define POSENC_NATIVE_BF16 1
#else
#define POSENC_NATIVE_BF16 0
#endif

#if HWY_TARGET == HWY_NEON

// 16-bit types by whole vectors of eight. On arm64 every conversion to or from f16, and to bf16 where the machine has
// it, takes one pipe of four; the additions and shuffles below take any.
using D32 = hn::ScalableTag<float>;
using D16 = hn::ScalableTag<std::uint16_t>;
using V32 = hn::Vec<D32>;
using V16 = hn::Vec<D16>;

template <class T> HWY_INLINE V16 load_bits(const T* x) {
  return hn::LoadU(D16(), reinterpret_cast<const std::uint16_t*>(x));
}
template <class T> HWY_INLINE void store_bits(V16 bits, T* out) {
  hn::StoreU(bits, D16(), reinterpret_cast<std::uint16_t*>(out));
}

#if POSENC_NATIVE_BF16
HWY_INLINE V16 narrow_natively(V32 low, V32 high) {
  uint16x8_t bits;
  asm(".arch_extension bf16\n\tbfcvtn %0.4h, %1.4s\n\tbfcvtn2 %0.8h, %2.4s"
      : "=&w"(bits)
      : "w"(low.raw), "w"(high.raw));
  return V16(bits);
}
#endif

template <class T> HWY_INLINE void widen(V16 bits, V32& low, V32& high) {
  if constexpr (!std::is_same_v<T, Half>) {
    low = hn::BitCast(D32(), hn::InterleaveLower(D16(), hn::Zero(D16()), bits));
    high = hn::BitCast(D32(), hn::InterleaveUpper(D16(), hn::Zero(D16()), bits));
  } else {
    const hn::Half<D16> d16;
    const hn::Rebind<hwy::float16_t, D32> half;
    low = hn::PromoteTo(D32(), hn::BitCast(half, hn::LowerHalf(d16, bits)));
    high = hn::PromoteTo(D32(), hn::BitCast(half, hn::UpperHalf(d16, bits)));
  }
}

// Rounded to nearest. bf16: half a unit is added and the lower half cut off, which is wrong only for a tie; then the
// lower half is 0, and `nearest` tells. What is not a number has a lower half of 0 here (tables and inputs see to
// that), so that nothing is carried into its sign.
template <class T> HWY_INLINE V16 narrow(V32 low, V32 high, V16& nearest) {
#if POSENC_NATIVE_BF16
  if constexpr (std::is_same_v<T, NativeBFloat16>) return narrow_natively(low, high);
#endif
  if constexpr (std::is_same_v<T, BFloat16>) {
    const hn::RebindToUnsigned<D32> du;
    const auto half = hn::Set(du, 0x8000);
    const auto a = hn::BitCast(D16(), hn::Add(hn::BitCast(du, low), half));
    const auto b = hn::BitCast(D16(), hn::Add(hn::BitCast(du, high), half));
    nearest = hn::Min(nearest, hn::ConcatEven(D16(), b, a));
    return hn::ConcatOdd(D16(), b, a);
  } else {
    const hn::Half<D16> d16;
    const hn::Rebind<hwy::float16_t, D32> half;
    return hn::Combine(D16(), hn::BitCast(d16, hn::DemoteTo(half, high)), hn::BitCast(d16, hn::DemoteTo(half, low)));
  }
}
template <class T> HWY_INLINE bool has_tie(V16 nearest) {
  return std::is_same_v<T, BFloat16> && !hn::AllFalse(D16(), hn::Eq(nearest, hn::Zero(D16())));
}
// Where there is a tie, with care.
HWY_INLINE void store_carefully(V32 low, V32 high, BFloat16* out) {
  store_as(D32(), low, out);
  store_as(D32(), high, out + hn::Lanes(D32()));
}
template <class T> HWY_INLINE void store_carefully(V32, V32, T*) {}

template <int kRows, class T> HWY_INLINE void turn_group_16(T* out0, T* out1, std::int64_t out_step, const T* x0,
                                                            const T* x1, std::int64_t x_step, const float* c,
                                                            const float* s) {
  const D32 d;
  const V32 c0 = hn::LoadU(d, c), c1 = hn::LoadU(d, c + 4), c2 = hn::LoadU(d, c + 8), c3 = hn::LoadU(d, c + 12);
  const V32 s0 = hn::LoadU(d, s), s1 = hn::LoadU(d, s + 4), s2 = hn::LoadU(d, s + 8), s3 = hn::LoadU(d, s + 12);
  for (int row = 0; row < kRows; ++row, x0 += x_step, x1 += x_step, out0 += out_step, out1 += out_step) {
    V32 a0, a1, a2, a3, b0, b1, b2, b3;
    widen<T>(load_bits(x0), a0, a1);
    widen<T>(load_bits(x1), b0, b1);
    widen<T>(load_bits(x0 + 8), a2, a3);
    widen<T>(load_bits(x1 + 8), b2, b3);
    turn(a0, b0, c0, s0);
    turn(a1, b1, c1, s1);
    turn(a2, b2, c2, s2);
    turn(a3, b3, c3, s3);
    V16 nearest = hn::Set(D16(), 0xFFFF);
    const V16 first0 = narrow<T>(a0, a1, nearest), first1 = narrow<T>(a2, a3, nearest);
    const V16 second0 = narrow<T>(b0, b1, nearest), second1 = narrow<T>(b2, b3, nearest);
    if (HWY_UNLIKELY(has_tie<T>(nearest))) {
      store_carefully(a0, a1, out0);
      store_carefully(a2, a3, out0 + 8);
      store_carefully(b0, b1, out1);
      store_carefully(b2, b3, out1 + 8);
      continue;
    }
    store_bits(first0, out0);
    store_bits(first1, out0 + 8);
    store_bits(second0, out1);
    store_bits(second1, out1 + 8);
  }
}

// Half a group of pairs that alternate.
template <int kRows, class T> HWY_INLINE void turn_group_16_doubled(T* out, std::int64_t out_step, const T* x,
                                                                    std::int64_t x_step, const float* c,
                                                                    const float* s) {
  const D32 d;
  const V32 c0 = hn::LoadU(d, c), c1 = hn::LoadU(d, c + 4), c2 = hn::LoadU(d, c + 8), c3 = hn::LoadU(d, c + 12);
  const V32 s0 = hn::LoadU(d, s), s1 = hn::LoadU(d, s + 4), s2 = hn::LoadU(d, s + 8), s3 = hn::LoadU(d, s + 12);
  for (int row = 0; row < kRows; ++row, x += x_step, out += out_step) {
    V32 v0, v1, v2, v3;
    widen<T>(load_bits(x), v0, v1);
    widen<T>(load_bits(x + 8), v2, v3);
    v0 = turned_doubled(d, v0, c0, s0);
    v1 = turned_doubled(d, v1, c1, s1);
    v2 = turned_doubled(d, v2, c2, s2);
    v3 = turned_doubled(d, v3, c3, s3);
    V16 nearest = hn::Set(D16(), 0xFFFF);
    const V16 first = narrow<T>(v0, v1, nearest), second = narrow<T>(v2, v3, nearest);
    if (HWY_UNLIKELY(has_tie<T>(nearest))) {
      store_carefully(v0, v1, out);
      store_carefully(v2, v3, out + 8);
      continue;
    }
    store_bits(first, out);
    store_bits(second, out + 8);
  }
}

template <class T>
concept Is16Bits = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, NativeBFloat16>;

template <int kRows, Is16Bits T> HWY_INLINE void turn_group_halves(T* out0, T* out1, std::int64_t out_step,
                                                                   const T* x0, const T* x1, std::int64_t x_step,
                                                                   const float* c, const float* s) {
  turn_group_16<kRows>(out0, out1, out_step, x0, x1, x_step, c, s);
}
template <int kRows, Is16Bits T> HWY_INLINE void turn_group_doubled(T* out, std::int64_t out_step, const T* x,
                                                                    std::int64_t x_step, const float* c,
                                                                    const float* s) {
  turn_group_16_doubled<kRows>(out, out_step, x, x_step, c, s);
  turn_group_16_doubled<kRows>(out + 16, out_step, x + 16, x_step, c + 16, s + 16);
}

#endif  // HWY_TARGET == HWY_NEON

// Rows whose first `pairs` fill groups. Kept apart from everything else: with a call in its loop, or more to keep in
// registers, it loses a tenth of its speed.
template <bool kReadAlternating, bool kWriteAlternating, class T, class W>
HWY_NOINLINE void turn_groups(const Run<T, W>& run, std::int64_t pairs) {
  const Run<T, W> r = run;  // a copy that no store can alias
  const std::int64_t group = pairs_in_group<T, W>();
  const std::int64_t read_step = (kReadAlternating ? 2 : 1) * group, write_step = (kWriteAlternating ? 2 : 1) * group;
  for (std::int64_t n = 0; n < r.rows.count; ++n) {
    const T *x0 = r.x + n * r.rows.x, *x1 = x0 + r.read_apart;
    T *out0 = r.out + n * r.rows.out, *out1 = out0 + r.write_apart;
    const W* HWY_RESTRICT c = r.cosines + n * r.rows.table;
    const W* HWY_RESTRICT s = r.sines + n * r.rows.table;
    // Pointers that move: the fewer instructions stand between two cache lines, the more of these are on their way.
    const T* on_the_way = x0;
    for (const W* const end = c + pairs; c != end; c += group, s += group, on_the_way += 2 * group) {
      fetch_ahead(on_the_way, 2 * group, r.ahead);
      turn_group<kReadAlternating, kWriteAlternating>(out0, out1, x0, x1, c, s);
      x0 += read_step, x1 += read_step;
      out0 += write_step, out1 += write_step;
    }
  }
}

template <int kRows, class T, class W> HWY_NOINLINE void turn_groups_halves(const Run<T, W>& run, std::int64_t first,
                                                                            std::int64_t last, std::int64_t pairs) {
  const Run<T, W> r = run;
  const std::int64_t group = pairs_in_group<T, W>();
  for (std::int64_t n = first; n < last; n += kRows) {
    const T *x0 = r.x + n * r.rows.x, *x1 = x0 + r.read_apart;
    T *out0 = r.out + n * r.rows.out, *out1 = out0 + r.write_apart;
    const W* HWY_RESTRICT c = r.cosines + n * r.rows.table;
    const W* HWY_RESTRICT s = r.sines + n * r.rows.table;
    const T* on_the_way = x0;
    for (const W* const end = c + pairs; c != end; c += group, s += group, on_the_way += 2 * group) {
      for (int row = 0; row < kRows; ++row) fetch_ahead(on_the_way + row * r.rows.x, 2 * group, r.ahead);
      turn_group_halves<kRows>(out0, out1, r.rows.out, x0, x1, r.rows.x, c, s);
      x0 += group, x1 += group;
      out0 += group, out1 += group;
    }
  }
}

template <int kRows, class T, class W> HWY_NOINLINE void turn_groups_doubled(const Run<T, W>& run, std::int64_t first,
                                                                             std::int64_t last, std::int64_t pairs) {
  const Run<T, W> r = run;
  const std::int64_t group = 2 * pairs_in_group<T, W>();
  for (std::int64_t n = first; n < last; n += kRows) {
    const T* x = r.x + n * r.rows.x;
    T* out = r.out + n * r.rows.out;
    const W* HWY_RESTRICT c = r.cosines + n * r.rows.table;
    const W* HWY_RESTRICT s = r.sines + n * r.rows.table;
    for (const W* const end = c + 2 * pairs; c != end; c += group, s += group, x += group, out += group) {
      for (int row = 0; row < kRows; ++row) fetch_ahead(x + row * r.rows.x, group, r.ahead);
      turn_group_doubled<kRows>(out, r.rows.out, x, r.rows.x, c, s);
    }
  }
}

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
