#include "kernels/cpu/row_math.h"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_math.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "kernels/cpu/convert-inl.h"
#include "kernels/cpu/fetch.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/native_16-inl.h"
#include "numerics/narrow.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The elements that remain after whole vectors.
template <class W, class T> HWY_INLINE W widened(T x) { return static_cast<W>(numerics::widen(x)); }
template <class T, class W> HWY_INLINE T narrowed(W x) { return numerics::narrow<T>(static_cast<double>(x)); }

template <class T, class W>
HWY_INLINE void add(T* out, const T* x, const W* HWY_RESTRICT p, std::int64_t n, const T* next) {
  const hn::ScalableTag<W> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  // A store loop must be unrolled to reach the speed of memory.
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    fetch(next + i);
    const auto a = hn::Add(load_as(d, x + i), hn::LoadU(d, p + i));
    const auto b = hn::Add(load_as(d, x + i + lanes), hn::LoadU(d, p + i + lanes));
    const auto c = hn::Add(load_as(d, x + i + 2 * lanes), hn::LoadU(d, p + i + 2 * lanes));
    const auto e = hn::Add(load_as(d, x + i + 3 * lanes), hn::LoadU(d, p + i + 3 * lanes));
    store_as(d, a, out + i);
    store_as(d, b, out + i + lanes);
    store_as(d, c, out + i + 2 * lanes);
    store_as(d, e, out + i + 3 * lanes);
  }
  for (; i < n; ++i) out[i] = narrowed<T>(widened<W>(x[i]) + p[i]);
}

#if POSENC_NATIVE_16

template <IsNative16 T> POSENC_NATIVE_16_ATTRIBUTE HWY_NOINLINE void add_natively(T* out, const T* x, const float* p,
                                                                                  std::int64_t n, const T* next) {
  const D32 d;
  const V16 one = one_in_f16();
  std::int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    fetch(next + i);
    for (std::int64_t j = i; j < i + 32; j += 8) {
      const V16 bits = load_bits(x + j);
      const V32 low = plus_lower<T>(hn::LoadU(d, p + j), bits, one);
      const V32 high = plus_upper<T>(hn::LoadU(d, p + j + 4), bits, one);
      store_bits(narrow_upper<T>(narrow_lower<T>(low), high), out + j);
    }
  }
  for (; i < n; ++i) out[i].value = narrowed<typename T::Plain>(widened<float>(x[i].value) + p[i]);
}
template <IsNative16 T> HWY_INLINE void add(T* out, const T* x, const float* p, std::int64_t n, const T* next) {
  add_natively(out, x, p, n, next);
}

#endif

template <class T, class W> HWY_INLINE void add_all(const AddRows<T, W>& job) {
  for (std::int64_t row = 0; row < job.rows; ++row) {
    add(job.out + row * job.out_stride, job.x + row * job.x_stride, job.p + row * job.p_stride, job.columns,
        job.next + row * job.x_stride);
  }
}
void add_f32(const AddRows<float, float>& job) { add_all(job); }
void add_f64(const AddRows<double, double>& job) { add_all(job); }
// The same job, with a different name for its element type.
template <class To, class From> HWY_INLINE AddRows<To, float> renamed(const AddRows<From, float>& job) {
  return {reinterpret_cast<To*>(job.out),
          reinterpret_cast<const To*>(job.x),
          job.p,
          job.out_stride,
          job.x_stride,
          job.p_stride,
          job.rows,
          job.columns,
          reinterpret_cast<const To*>(job.next)};
}
void add_f16(const AddRows<Half, float>& job) {
#if POSENC_NATIVE_16
  if (machine_multiplies_f16_long()) return add_all(renamed<NativeHalf>(job));
#endif
  add_all(job);
}
void add_bf16(const AddRows<BFloat16, float>& job) {
#if POSENC_NATIVE_16
  if (machine_rounds_to_bf16()) return add_all(renamed<NativeBFloat16>(job));
#endif
  add_all(job);
}

template <class To, class From>
HWY_INLINE void convert(To* HWY_RESTRICT out, const From* HWY_RESTRICT x, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {  // unrolled, as above
    const auto a = load_as(d, x + i), b = load_as(d, x + i + lanes);
    const auto c = load_as(d, x + i + 2 * lanes), e = load_as(d, x + i + 3 * lanes);
    store_as(d, a, out + i);
    store_as(d, b, out + i + lanes);
    store_as(d, c, out + i + 2 * lanes);
    store_as(d, e, out + i + 3 * lanes);
  }
  for (; i + lanes <= n; i += lanes) store_as(d, load_as(d, x + i), out + i);
  for (; i < n; ++i) out[i] = narrowed<To>(widened<float>(x[i]));
}
void narrow_f16(Half* out, const float* p, std::int64_t n) { convert(out, p, n); }
void narrow_bf16(BFloat16* out, const float* p, std::int64_t n) { convert(out, p, n); }
void bf16_to_f16(Half* out, const BFloat16* p, std::int64_t n) { convert(out, p, n); }
void f16_to_bf16(BFloat16* out, const Half* p, std::int64_t n) { convert(out, p, n); }
void widen_f16(float* out, const Half* x, std::int64_t n) { convert(out, x, n); }
void widen_bf16(float* out, const BFloat16* x, std::int64_t n) { convert(out, x, n); }

void copy_f32(float* HWY_RESTRICT out, const float* HWY_RESTRICT x, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto nan = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<decltype(d)>(), 0x7FC00000u));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    hn::StoreU(hn::IfThenElse(hn::Eq(v, v), v, nan), d, out + i);
  }
  for (; i < n; ++i) out[i] = x[i] == x[i] ? x[i] : hn::GetLane(nan);
}

template <class T>
HWY_INLINE void quantise(E4M3* HWY_RESTRICT out, const T* HWY_RESTRICT x, float scale, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto by = hn::Set(d, scale);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store_as(d, hn::Div(load_as(d, x + i), by), out + i);
  for (; i < n; ++i) out[i] = narrowed<E4M3>(widened<float>(x[i]) / scale);
}
void quantise_f32(E4M3* out, const float* x, float scale, std::int64_t n) { quantise(out, x, scale, n); }
void quantise_f16(E4M3* out, const Half* x, float scale, std::int64_t n) { quantise(out, x, scale, n); }
void quantise_bf16(E4M3* out, const BFloat16* x, float scale, std::int64_t n) { quantise(out, x, scale, n); }

// numerics::q8_block_of, by vectors.
template <class T> HWY_INLINE void quantise_block(Q8Block* HWY_RESTRICT out, const T* HWY_RESTRICT x) {
  const hn::CappedTag<float, static_cast<std::size_t>(Q8Block::kElements)> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::int8_t, decltype(d)> d8;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto most =
      hn::Zero(di);  // sizes of floats are in the order of their bits; those that are not finite are above all others
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < Q8Block::kElements; i += lanes) {
    most = hn::Max(most, hn::BitCast(di, hn::Abs(load_as(d, x + i))));
  }
  const std::int32_t bits = hn::GetLane(hn::MaxOfLanes(di, most));
  if (bits >= 0x7F800000) {
    *out = {Half{0x7E00}, {}};
    return;
  }
  const float step = std::bit_cast<float>(bits) / 127.0f;
  store_as(one, hn::Set(one, step), &out->scale);
  const auto by = hn::Set(d, step > 0x1p-128f ? 1.0f / step : 0.0f);
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < Q8Block::kElements; i += lanes) {
    const auto value = load_as(d, x + i);
    const auto scaled = hn::Mul(hn::Abs(value), by);
    const auto whole = hn::ConvertTo(di, scaled);
    const auto is_up = hn::Ge(hn::Sub(scaled, hn::ConvertTo(d, whole)), hn::Set(d, 0.5f));  // the rest is exact
    const auto rounded = hn::Sub(whole, hn::VecFromMask(di, hn::RebindMask(di, is_up)));
    const auto is_negative = hn::RebindMask(di, hn::Lt(value, hn::Zero(d)));
    hn::StoreU(hn::DemoteTo(d8, hn::IfThenElse(is_negative, hn::Neg(rounded), rounded)), d8, out->values + i);
  }
}
template <class T>
HWY_INLINE void quantise_blocks(Q8Block* HWY_RESTRICT out, const T* HWY_RESTRICT x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += Q8Block::kElements) quantise_block(out++, x + i);
}
void blocks_of_f32(Q8Block* out, const float* x, std::int64_t n) { quantise_blocks(out, x, n); }
void blocks_of_f16(Q8Block* out, const Half* x, std::int64_t n) { quantise_blocks(out, x, n); }
void blocks_of_bf16(Q8Block* out, const BFloat16* x, std::int64_t n) { quantise_blocks(out, x, n); }

void sum_f32(double* HWY_RESTRICT sums, const float* HWY_RESTRICT x, std::int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), hn::PromoteTo(d, hn::LoadU(half, x + i))), d, sums + i);
  }
  for (; i < n; ++i) sums[i] += static_cast<double>(x[i]);
}

}  // namespace posenc::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::kernels::cpu {

HWY_EXPORT(add_f32);
HWY_EXPORT(add_f64);
HWY_EXPORT(add_f16);
HWY_EXPORT(add_bf16);
HWY_EXPORT(narrow_f16);
HWY_EXPORT(narrow_bf16);
HWY_EXPORT(bf16_to_f16);
HWY_EXPORT(f16_to_bf16);
HWY_EXPORT(widen_f16);
HWY_EXPORT(widen_bf16);
HWY_EXPORT(copy_f32);
HWY_EXPORT(quantise_f32);
HWY_EXPORT(quantise_f16);
HWY_EXPORT(quantise_bf16);
HWY_EXPORT(blocks_of_f32);
HWY_EXPORT(blocks_of_f16);
HWY_EXPORT(blocks_of_bf16);
HWY_EXPORT(sum_f32);

void add_rows(const AddRows<float, float>& job) noexcept { HWY_DYNAMIC_DISPATCH(add_f32)(job); }
void add_rows(const AddRows<double, double>& job) noexcept { HWY_DYNAMIC_DISPATCH(add_f64)(job); }
void add_rows(const AddRows<Half, float>& job) noexcept { HWY_DYNAMIC_DISPATCH(add_f16)(job); }
void add_rows(const AddRows<BFloat16, float>& job) noexcept { HWY_DYNAMIC_DISPATCH(add_bf16)(job); }
void narrow_row(Half* out, const float* p, std::int64_t n) noexcept { HWY_DYNAMIC_DISPATCH(narrow_f16)(out, p, n); }
void narrow_row(BFloat16* out, const float* p, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(narrow_bf16)(out, p, n);
}
void narrow_row(Half* out, const BFloat16* p, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(bf16_to_f16)(out, p, n);
}
void narrow_row(BFloat16* out, const Half* p, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(f16_to_bf16)(out, p, n);
}
void widen_row(float* out, const Half* x, std::int64_t n) noexcept { HWY_DYNAMIC_DISPATCH(widen_f16)(out, x, n); }
void widen_row(float* out, const BFloat16* x, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(widen_bf16)(out, x, n);
}
void copy_without_payload(float* out, const float* x, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(copy_f32)(out, x, n);
}
void quantise_row(E4M3* out, const float* x, float scale, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(quantise_f32)(out, x, scale, n);
}
void quantise_row(E4M3* out, const Half* x, float scale, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(quantise_f16)(out, x, scale, n);
}
void quantise_row(E4M3* out, const BFloat16* x, float scale, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(quantise_bf16)(out, x, scale, n);
}
void quantise_row(Q8Block* out, const float* x, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(blocks_of_f32)(out, x, n);
}
void quantise_row(Q8Block* out, const Half* x, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(blocks_of_f16)(out, x, n);
}
void quantise_row(Q8Block* out, const BFloat16* x, std::int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(blocks_of_bf16)(out, x, n);
}
void sum_row(double* sums, const float* x, std::int64_t n) noexcept { HWY_DYNAMIC_DISPATCH(sum_f32)(sums, x, n); }

}  // namespace posenc::kernels::cpu
#endif
