// tabulate in float32 at consecutive positions, where every wave has two columns. A thread owns four columns and
// kRows rows: the first row's sine and cosine in double, then one rotation by the wave's own step for each further
// row. POSENC_HALVES 0: columns 2w and 2w + 1; 1: columns w and w + waves, and the thread owns four of either.
//
// Error: sine_cosine is within 2^-52 for the first row and for the step. Each rotation multiplies by a step that is
// off by √2 · 2^-52 and rounds four times (2^-52 at most): after 7 of them the value is off by less than 2^-52 + 7
// · 2.5 · 2^-52 < 2^-47. Twice that is allowed for; where the rounding could then go either way the value is made by
// itself.

#include "kernels/cuda/vectors.cuh"

namespace posenc::kernels::cuda {
namespace {

constexpr int kRows = 8;
constexpr int kWaves = POSENC_HALVES ? 4 : 2;
constexpr double kError = 0x1p-46;

struct SineAndCosine {
  double sine, cosine;
};

__device__ __forceinline__ double value_of(const SineAndCosine& pair, unsigned quarter) {
  return numerics::detail::quarter_value(quarter, pair.sine, pair.cosine);
}

__device__ __noinline__ float single_value(const WaveParams& waves, std::int64_t wave, std::int64_t position,
                                           unsigned quarter, const Spot& spot) {
  const numerics::Angle angle = angle_of(waves, wave, position);
  return wave_value<float>(angle, numerics::reduce(angle), quarter, waves.scale, spot);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) table_rows(const __grid_constant__ TableRowsParams p) {
  const auto across = static_cast<std::uint32_t>((p.wave_count / kWaves + threads() - 1) / threads());
  const std::int64_t wave = (std::int64_t{block() % across} * threads() + thread()) * kWaves;
  if (wave >= p.wave_count) return;
  const std::int64_t t0 = std::int64_t{block() / across} * kRows;
  const double scale = p.waves.scale, error = (scale < 0 ? -scale : scale) * kError;

  SineAndCosine now[kWaves], step[kWaves];
#pragma unroll
  for (int w = 0; w < kWaves; ++w) {
    const FrequencyWords& f = p.waves.frequencies[wave + w];
    const auto at = [&](std::int64_t position) {
      const numerics::Angle angle{{{f.words[0], f.words[1], f.words[2], f.words[3]}},
                                  static_cast<std::uint64_t>(position)};
      const numerics::SineCosine pair = numerics::sine_cosine(numerics::reduce(angle));
      return SineAndCosine{pair.sine, pair.cosine};
    };
    now[w] = at(p.first + t0);
    step[w] = at(1);
    now[w].sine *= scale, now[w].cosine *= scale;
  }
  std::uint32_t doubtful = 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t t = t0 + r;
    if (t >= p.sequence) break;
    float row[2][kWaves];
#pragma unroll
    for (int w = 0; w < kWaves; ++w) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const double value = value_of(now[w], p.quarters[half]);
        const auto low = static_cast<float>(value - error), high = static_cast<float>(value + error);
        if (low != high) doubtful |= 1u << r;
        row[half][w] = low;
      }
    }
    float* const out = p.out + t * p.token_stride;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      float* const to = out + b * p.batch_stride;
      if constexpr (POSENC_HALVES) {
        *reinterpret_cast<Float4*>(to + wave) = {row[0][0], row[0][1], row[0][kWaves - 2], row[0][kWaves - 1]};
        *reinterpret_cast<Float4*>(to + p.wave_count + wave) = {row[1][0], row[1][1], row[1][kWaves - 2],
                                                                row[1][kWaves - 1]};
      } else {
        *reinterpret_cast<Float4*>(to + 2 * wave) = {row[0][0], row[1][0], row[0][1], row[1][1]};
      }
    }
#pragma unroll
    for (int w = 0; w < kWaves; ++w) {
      const SineAndCosine before = now[w];
      now[w].sine = __builtin_fma(before.sine, step[w].cosine, before.cosine * step[w].sine);
      now[w].cosine = __builtin_fma(before.cosine, step[w].cosine, -(before.sine * step[w].sine));
    }
  }
  while (doubtful != 0) {
    const int r = __builtin_ctz(doubtful);
    doubtful &= doubtful - 1;
    const std::int64_t t = t0 + r;
    for (int w = 0; w < kWaves; ++w) {
      for (int half = 0; half < 2; ++half) {
        const std::int64_t column = POSENC_HALVES ? half * p.wave_count + wave + w : 2 * (wave + w) + half;
        const Spot spot{p.fault, p.first + t, column};
        const float value = single_value(p.waves, wave + w, p.first + t, p.quarters[half], spot);
        for (std::int64_t b = 0; b < p.batch; ++b) p.out[b * p.batch_stride + t * p.token_stride + column] = value;
      }
    }
  }
}

}  // namespace posenc::kernels::cuda
