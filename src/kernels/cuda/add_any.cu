// tabulate and add for every source, type and stride: each thread computes one element after another.

#include "kernels/cuda/elements.cuh"

namespace posenc::kernels::cuda {
namespace {

/// Element c of the vector at token (b, t), rounded once to V.
template <class V> __device__ V vector_element(const AddParams& p, std::int64_t b, std::int64_t t, std::int64_t c) {
  if (p.source == kFromWaves) {
    const std::uint32_t column = p.columns[c];
    const std::int64_t wave = column >> 2;
    const std::int64_t position = position_at(p.positions, b, t, axis_of(p.waves, wave), p.fault);
    const numerics::Angle angle = angle_of(p.waves, wave, position);
    const Spot spot{p.fault, position, c};
    if constexpr (sizeof(V) < sizeof(double)) {
      return wave_value<V>(angle, numerics::reduce(angle), column & 3, p.waves.scale, spot);
    } else {
      return wave_by_integers<V>(angle, column & 3, p.waves.scale, spot);
    }
  }
  const std::int64_t position = position_at(p.positions, b, t, 0, p.fault);
  double value = 0;
  if (p.source == kFromRows) {
    value = load(p.rows.data, p.rows.type, (position + p.offset) * p.rows.row_stride + c * p.rows.column_stride);
  } else {
    value = p.start[c] + static_cast<double>(position) * p.step[c];
  }
  if constexpr (sizeof(V) == sizeof(float)) return narrowed(value);
  return narrow<V>(value);
}

template <class T>
__device__ void write_vector(const AddParams& p, std::int64_t b, std::int64_t t, std::int64_t c, std::int64_t at) {
  static_cast<T*>(p.out.data)[at] = vector_element<T>(p, b, t, c);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) add_any(const __grid_constant__ AddParams p) {
  const std::int64_t count = p.out.batch * p.out.sequence * p.out.width;
  for (std::int64_t n = global_thread(); n < count; n += global_threads()) {
    const std::int64_t c = n % p.out.width, token = n / p.out.width;
    const std::int64_t b = token / p.out.sequence, t = token % p.out.sequence;
    const std::int64_t at = sequence_offset(p.out, b) + t * p.out.token_stride + c * p.out.column_stride;
    if (p.x.data == nullptr) {
      switch (p.out.type) {
        case kTypeF64:
          write_vector<double>(p, b, t, c, at);
          break;
        case kTypeF16:
          write_vector<Half>(p, b, t, c, at);
          break;
        case kTypeBF16:
          write_vector<BFloat16>(p, b, t, c, at);
          break;
        default:
          write_vector<float>(p, b, t, c, at);
      }
      continue;
    }
    const double x = load(p.x.data, p.x.type, sequence_offset(p.x, b) + t * p.x.token_stride + c * p.x.column_stride);
    const double sum = p.out.type == kTypeF64 ? sum_of(x, vector_element<double>(p, b, t, c))
                                              : widened(sum_of(narrowed(x), vector_element<float>(p, b, t, c)));
    store(p.out.data, p.out.type, at, sum);
  }
}

}  // namespace posenc::kernels::cuda
