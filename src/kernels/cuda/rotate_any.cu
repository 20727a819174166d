// rotate for every type, stride, layout and precision. A block owns one token of one part: it computes the cosines
// and sines of some pairs, then loops over the heads. POSENC_WORKING is the type of the arithmetic.

#include "kernels/cuda/rotations.cuh"

namespace posenc::kernels::cuda {
namespace {

using W = POSENC_WORKING;

__device__ CosSin<W> cos_sin_at(const RotateParams& p, std::int64_t b, std::int64_t t, std::int64_t pair, bool keys) {
  CosSin<W> value;
  if (p.cosines.data != nullptr) {
    value = cos_sin_by_table<W>(p, b, t, pair);
  } else if (p.rates != nullptr) {
    value = cos_sin_by_growth<W>(p, b, t, pair, keys);
  } else {
    value = cos_sin_by_waves<W>(p, position_at(p.positions, b, t, axis_of(p.waves, pair), p.fault), pair);
  }
  return {rounded_to(p.table_type, value.cosine), rounded_to(p.table_type, value.sine)};
}

extern __shared__ double scratch[];

}  // namespace

extern "C" __global__ void __launch_bounds__(128) rotate_any(const __grid_constant__ RotateParams p) {
  const std::int64_t tokens = p.batch * p.sequence;
  const RotatePart& part = p.parts[block() >= tokens ? 1 : 0];
  const std::int64_t token = block() >= tokens ? block() - tokens : block();
  const std::int64_t b = token / p.sequence, t = token % p.sequence;
  auto* const cos_sins = reinterpret_cast<CosSin<W>*>(scratch);
  auto* const row = reinterpret_cast<W*>(cos_sins + p.chunk);  // if pairs move: the rotated features of one head
  const int rounding = p.arithmetic_type;
  const auto round = [&](W value) { return rounded_to(rounding, value); };
  const std::int64_t x_token = b * part.x.batch_stride + t * part.x.token_stride;
  const std::int64_t out_token = b * part.out.batch_stride + t * part.out.token_stride;
  const bool in_place = part.x.data == part.out.data;

  for (std::int64_t i0 = 0; i0 < p.pairs; i0 += p.chunk) {
    const std::int64_t count = p.pairs - i0 < p.chunk ? p.pairs - i0 : p.chunk;
    sync_block();
    for (std::int64_t i = thread(); i < count; i += threads()) {
      cos_sins[i] = cos_sin_at(p, b, t, i0 + i, part.keys != 0);
    }
    sync_block();
    for (std::int64_t h = 0; h < part.heads; ++h) {
      const std::int64_t x_row = x_token + h * part.x.head_stride, out_row = out_token + h * part.out.head_stride;
      const auto x_at = [&](std::int64_t feature) { return x_row + feature * part.x.feature_stride; };
      if (p.moves != 0) {  // the chunk is then all pairs
        for (std::int64_t f = thread(); f < 2 * p.pairs; f += threads()) {
          row[f] = load_as<W>(part.x.data, part.x.type, x_at(part.first + f));
        }
        sync_block();
      }
      for (std::int64_t i = thread(); i < count; i += threads()) {
        const std::int64_t start = (i0 + i) / p.in_block * 2 * p.in_block, pair = (i0 + i) % p.in_block;
        const std::int64_t read = start + pair * p.read_step, write = part.first + start + pair * p.write_step;
        const W u = p.moves != 0 ? row[read] : load_as<W>(part.x.data, part.x.type, x_at(part.first + read));
        const W v = p.moves != 0 ? row[read + p.read_apart]
                                 : load_as<W>(part.x.data, part.x.type, x_at(part.first + read + p.read_apart));
        const CosSin<W> value = cos_sins[i];
        store_from(part.out.data, part.out.type, out_row + write * part.out.feature_stride,
                   round(round(u * value.cosine) - round(v * value.sine)));
        store_from(part.out.data, part.out.type, out_row + (write + p.write_apart) * part.out.feature_stride,
                   round(round(v * value.cosine) + round(u * value.sine)));
      }
      if (p.moves != 0) sync_block();
    }
  }
  if (in_place) return;
  const std::int64_t still = part.features - 2 * p.pairs;
  for (std::int64_t n = thread(); n < still * part.heads; n += threads()) {
    const std::int64_t h = n / still, f = n % still < part.first ? n % still : n % still + 2 * p.pairs;
    const double value = load(part.x.data, part.x.type, x_token + h * part.x.head_stride + f * part.x.feature_stride);
    store(part.out.data, part.out.type, out_token + h * part.out.head_stride + f * part.out.feature_stride, value);
  }
}

}  // namespace posenc::kernels::cuda
