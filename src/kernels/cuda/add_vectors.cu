// add for contiguous columns: a thread owns 16 bytes of columns at one token, computes its position vector once and
// adds it to up to kRows sequences, whose loads are all in flight meanwhile. POSENC_ELEMENT is the type of x;
// POSENC_SOURCE 0 computes waves, 1 reads rows.

#include "kernels/cuda/quick_waves.cuh"
#include "kernels/cuda/vectors.cuh"

namespace posenc::kernels::cuda {
namespace {

constexpr int kRows = 8;

// The waves of columns c … c + count − 1.
template <int kCount> __device__ __forceinline__ void make_waves(const AddParams& p, std::int64_t b, std::int64_t t,
                                                                 std::int64_t c, float* out) {
  if constexpr (POSENC_SOURCE == 0) {
    const std::int64_t position = position_at(p.positions, b, t, 0, p.fault), first = c / 2;
    bool all_sure = true;
#pragma unroll
    for (int j = 0; j < kCount; j += 2) {
      const QuickAngle quick = quick_angle<true>(p.waves, first + j / 2, position);
      const QuickValue one = quick_value(quick, p.quarters[0], p.waves.scale),
                       other = quick_value(quick, p.quarters[1], p.waves.scale);
      out[j] = one.value, out[j + 1] = other.value;
      all_sure = all_sure & one.is_sure & other.is_sure;
    }
    if (all_sure) [[likely]]
      return;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      out[j] = value_slowly(&p.waves, p.fault, first + j / 2, position, c + j, p.quarters[j % 2]);
    }
  } else {
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const std::uint32_t column = p.columns[c + j], wave = column >> 2;
      const std::int64_t position = position_at(p.positions, b, t, axis_of(p.waves, wave), p.fault);
      out[j] =
          sure_value(p.waves, p.fault, quick_angle(p.waves, wave, position), column & 3, {wave, position, c + j});
    }
  }
}

template <int kCount> __device__ __forceinline__ void read_rows(const AddParams& p, std::int64_t b, std::int64_t t,
                                                                std::int64_t c, float* out) {
  const std::int64_t row = position_at(p.positions, b, t, 0, p.fault) + p.offset;
  const std::int64_t at = row * p.rows.row_stride + c;
  // Rows are aligned to 16 bytes; the host has checked.
  const auto read = [&](auto kind) {
    using V = Vector<decltype(kind)>;
    constexpr int kStep = V::kCount < kCount ? V::kCount : kCount;
    if constexpr (V::kCount <= kCount) {
#pragma unroll
      for (int j = 0; j < kCount; j += kStep) {
        V::unpack(load16(static_cast<const decltype(kind)*>(p.rows.data) + at + j), out + j);
      }
    } else {
#pragma unroll
      for (int j = 0; j < kCount; ++j) out[j] = narrowed(load(p.rows.data, p.rows.type, at + j));
    }
  };
  if (p.rows.type == kTypeF32) return read(float{});
  if (p.rows.type == kTypeBF16) return read(BFloat16{});
  read(Half{});
}

}  // namespace

extern "C" __global__ void __launch_bounds__(POSENC_SOURCE == 1 ? 256 : 64)
    add_vectors(const __grid_constant__ AddParams p) {
  using T = POSENC_ELEMENT;
  constexpr int kCount = Vector<T>::kCount;
  const Quotient place = divide(block(), p.across), line = divide(place.whole, p.by_sequence);
  const std::int64_t c = (std::int64_t{place.rest} * threads() + thread()) * kCount;
  const std::uint32_t group = line.whole, t = line.rest;
  if (c >= p.out.width) return;
  const std::int64_t b0 = std::int64_t{group} * p.together;
  const std::int64_t left = p.out.batch - b0;
  const int rows = static_cast<int>(left < p.together ? left : p.together);

  Bytes16 x[kRows];
#pragma unroll
  for (int n = 0; n < kRows; ++n) {
    if (n < rows) {
      x[n] = load16(static_cast<const T*>(p.x.data) + sequence_offset(p.x, b0 + n) + t * p.x.token_stride + c);
    }
  }
  float vector[kCount];
  if constexpr (POSENC_SOURCE != 1) {
    make_waves<kCount>(p, b0, t, c, vector);
  } else {
    read_rows<kCount>(p, b0, t, c, vector);
  }
#pragma unroll
  for (int n = 0; n < kRows; ++n) {
    if (n >= rows) continue;
    float f[kCount], sum[kCount];
    Vector<T>::unpack(x[n], f);
#pragma unroll
    for (int j = 0; j < kCount; ++j) sum[j] = f[j] + vector[j];
    Bytes16 packed = Vector<T>::pack(sum);
    if (is_marked<T>(mark<T>(packed, 0))) [[unlikely]]
      packed = sums_slowly<T>(f, vector);
    store16(static_cast<T*>(p.out.data) + sequence_offset(p.out, b0 + n) + t * p.out.token_stride + c, packed);
  }
}

}  // namespace posenc::kernels::cuda
