// tabulate in float32 at consecutive positions, if every wave has two columns. A thread owns two waves and kRows
// rows: the first row's sine and cosine in double, then one rotation by the wave's own step for each further row.
// POSENC_HALVES 0: columns 2w and 2w + 1; 1: columns w and w + waves.
//
// Error: the first row is within 2^-50 (quick_waves.cuh), the step within 2^-52 (it comes from the host). Each
// rotation multiplies by a step with an error of √2 · 2^-52 and rounds four times (2^-52 at most): after 7 of them
// the error is below 2^-50 + 7 · 2.5 · 2^-52 < 2^-47. Twice that is allowed for; if the rounding could then go either
// way, the value is computed by itself.

#include "kernels/cuda/quick_waves.cuh"
#include "kernels/cuda/vectors.cuh"

namespace posenc::kernels::cuda {
namespace {

constexpr int kRows = 8;
constexpr int kWaves = 2;

// Whether an error of 2^-46 could change the rounding of a value of at most 1 to a float. Conversions are slow, so
// bits are tested first: down to 2^-10, the error is at most 2^16 units in the last place of a double.
__device__ __forceinline__ bool is_near_midpoint(double value) {
  constexpr double kError = 0x1p-46;
  constexpr std::uint32_t kUnits = 1u << 16, kMidpoint = 1u << 28;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t rest = static_cast<std::uint32_t>(bits) & 0x1FFFFFFFu;  // the bits that a float drops
  const std::uint32_t size = static_cast<std::uint32_t>(bits >> 32) & 0x7FFFFFFFu;
  if ((rest - (kMidpoint - kUnits) > 2 * kUnits) & (size >= (1023u - 10) << 20)) [[likely]]
    return false;
  return static_cast<float>(value - kError) != static_cast<float>(value + kError);
}

__device__ __forceinline__ void write(float* to, const float (&row)[2][kWaves], std::int64_t waves) {
  if constexpr (POSENC_HALVES) {
    *reinterpret_cast<Float2*>(to) = {row[0][0], row[0][1]};
    *reinterpret_cast<Float2*>(to + waves) = {row[1][0], row[1][1]};
  } else {
    *reinterpret_cast<Float4*>(to) = {row[0][0], row[1][0], row[0][1], row[1][1]};
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) table_rows(const __grid_constant__ TableRowsParams p) {
  // A sequence of the batch, a tile of rows, a piece of the row.
  const Quotient place = divide(block(), p.across), tile = divide(place.whole, p.by_tiles);
  const std::int64_t wave = (std::int64_t{place.rest} * threads() + thread()) * kWaves;
  if (wave >= p.wave_count) return;
  const std::int64_t t0 = std::int64_t{tile.rest} * kRows;
  const double scale = p.waves.scale;
  const int rows = static_cast<int>(p.sequence - t0 < kRows ? p.sequence - t0 : kRows);
  float* const start = p.out + std::int64_t{tile.whole} * p.batch_stride;
  float* out = start + t0 * p.token_stride + (POSENC_HALVES ? wave : 2 * wave);

  // The two columns of a wave, and how a step rotates them into one another.
  double one[kWaves], other[kWaves], cosine[kWaves], sine[kWaves];
#pragma unroll
  for (int w = 0; w < kWaves; ++w) {
    const QuickAngle r = quick_angle<true>(p.waves, wave + w, p.first + t0);
    one[w] = numerics::detail::quarter_value(r.quarter + p.quarters[0], r.sine, r.cosine) * scale;
    other[w] = numerics::detail::quarter_value(r.quarter + p.quarters[1], r.sine, r.cosine) * scale;
    cosine[w] = p.steps[wave + w].cosine;
    sine[w] = p.steps[wave + w].sine;
  }
  std::uint32_t doubtful = 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r >= rows) break;
    float row[2][kWaves];
#pragma unroll
    for (int w = 0; w < kWaves; ++w) {
      row[0][w] = static_cast<float>(one[w]), row[1][w] = static_cast<float>(other[w]);
      if (is_near_midpoint(one[w]) | is_near_midpoint(other[w])) doubtful |= 1u << r;
    }
    write(out, row, p.wave_count);
    out += p.token_stride;
#pragma unroll
    for (int w = 0; w < kWaves; ++w) {
      const double before = one[w];
      one[w] = __builtin_fma(before, cosine[w], other[w] * sine[w]);
      other[w] = __builtin_fma(other[w], cosine[w], -(before * sine[w]));
    }
  }
  while (doubtful != 0) {
    const int r = __builtin_ctz(doubtful);
    doubtful &= doubtful - 1;
    const std::int64_t t = t0 + r;
    for (int w = 0; w < kWaves; ++w) {
      for (int half = 0; half < 2; ++half) {
        const std::int64_t column = POSENC_HALVES ? half * p.wave_count + wave + w : 2 * (wave + w) + half;
        const std::int64_t position = p.first + t;
        const float value = sure_value(p.waves, p.fault, quick_angle(p.waves, wave + w, position), p.quarters[half],
                                       {wave + w, position, column});
        start[t * p.token_stride + column] = value;
      }
    }
  }
}

}  // namespace posenc::kernels::cuda
