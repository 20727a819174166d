// rotate for every type, stride, layout and precision, and the writing of a cache for those that append_vectors does
// not take. A block owns one token of one part: it computes the cosines and sines of some pairs, then loops over the
// heads. POSENC_WORKING is the type of the arithmetic.

#include "kernels/cuda/norms.cuh"
#include "kernels/cuda/rotations.cuh"
#include "kernels/cuda/slots.cuh"

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

// 1 / √(mean of squares + epsilon) of each head. A warp sums a head.
__device__ void make_factors(const RotatePart& part, std::int64_t x_token, W* factors) {
  const unsigned lane = thread() % 32, warps = threads() / 32;
  for (std::int64_t h = thread() / 32; h < part.heads; h += warps) {
    W sum = 0;
    for (std::int64_t f = lane; f < part.features; f += 32) {
      const W value =
          load_as<W>(part.x.data, part.x.type, x_token + h * part.x.head_stride + f * part.x.feature_stride);
      sum += value * value;
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += across_lanes(sum, lanes);
    if (lane == 0) factors[h] = sum;
  }
  sync_block();
  W all = 0;  // every thread adds all heads, in the same order
  for (std::int64_t h = 0; part.norm.over_heads != 0 && h < part.heads; ++h) all += factors[h];
  sync_block();
  const auto count = static_cast<W>(part.norm.over_heads != 0 ? part.heads * part.features : part.features);
  for (std::int64_t h = thread(); h < part.heads; h += threads()) {
    const W sum = part.norm.over_heads != 0 ? all : factors[h];
    factors[h] = inverse_root(sum / count + static_cast<W>(part.norm.epsilon));
  }
  sync_block();
}

extern __shared__ double scratch[];

}  // namespace

extern "C" __global__ void __launch_bounds__(128) rotate_any(const __grid_constant__ RotateParams p) {
  const std::int64_t tokens = p.batch * p.sequence;
  const RotatePart& part = p.parts[block() / tokens];
  const std::int64_t token = block() % tokens;
  const std::int64_t b = token / p.sequence, t = token % p.sequence;
  std::int64_t page = 0, in_page = 0;
  if (part.to_slots != 0 || part.from_slots != 0) {
    const std::int64_t slot = given_slot(p.slots, token);
    if (!is_written(p, token, slot)) return;
    page = slot / part.page_tokens, in_page = slot % part.page_tokens;
  }
  auto* const cos_sins = reinterpret_cast<CosSin<W>*>(scratch);
  auto* const row = reinterpret_cast<W*>(cos_sins + p.chunk);  // if pairs move: the rotated features of one head
  W* const factors = row + (p.moves != 0 ? 2 * p.pairs : 0);   // of a norm, for each head
  const int rounding = p.arithmetic_type;
  const auto round = [&](W value) { return rounded_to(rounding, value); };
  const auto token_of = [&](const HeadParams& x, bool is_cache) {
    return is_cache ? page * x.batch_stride + in_page * x.token_stride : b * x.batch_stride + t * x.token_stride;
  };
  const std::int64_t x_token = token_of(part.x, part.from_slots != 0);
  const std::int64_t out_token = token_of(part.out, part.to_slots != 0);
  const bool in_place = part.x.data == part.out.data, is_normalised = part.norm.weight != nullptr;
  if (is_normalised) make_factors(part, x_token, factors);
  const auto value_at = [&](std::int64_t h, std::int64_t feature) {
    const std::int64_t at = x_token + h * part.x.head_stride + feature * part.x.feature_stride;
    const W value = load_as<W>(part.x.data, part.x.type, at);
    if (!is_normalised) return value;
    const NormParams& norm = part.norm;
    const W weight = load_as<W>(norm.weight, norm.type, h * norm.head_stride + feature * norm.feature_stride);
    return value * factors[h] * (weight + static_cast<W>(norm.offset));
  };

  for (std::int64_t i0 = 0; part.rotates != 0 && i0 < p.pairs; i0 += p.chunk) {
    const std::int64_t count = p.pairs - i0 < p.chunk ? p.pairs - i0 : p.chunk;
    sync_block();
    for (std::int64_t i = thread(); i < count; i += threads()) {
      cos_sins[i] = cos_sin_at(p, b, t, i0 + i, part.keys != 0);
    }
    sync_block();
    for (std::int64_t h = 0; h < part.heads; ++h) {
      const std::int64_t out_row = out_token + h * part.out.head_stride;
      if (p.moves != 0) {  // the chunk is then all pairs
        for (std::int64_t f = thread(); f < 2 * p.pairs; f += threads()) row[f] = value_at(h, part.first + f);
        sync_block();
      }
      for (std::int64_t i = thread(); i < count; i += threads()) {
        const std::int64_t start = (i0 + i) / p.in_block * 2 * p.in_block, pair = (i0 + i) % p.in_block;
        const std::int64_t read = start + pair * p.read_step, write = part.first + start + pair * p.write_step;
        const W u = p.moves != 0 ? row[read] : value_at(h, part.first + read);
        const W v = p.moves != 0 ? row[read + p.read_apart] : value_at(h, part.first + read + p.read_apart);
        const CosSin<W> value = cos_sins[i];
        store_from(part.out.data, part.out.type, out_row + write * part.out.feature_stride,
                   round(round(u * value.cosine) - round(v * value.sine)));
        store_from(part.out.data, part.out.type, out_row + (write + p.write_apart) * part.out.feature_stride,
                   round(round(v * value.cosine) + round(u * value.sine)));
      }
      if (p.moves != 0) sync_block();
    }
  }
  if (in_place && !is_normalised) return;
  const std::int64_t rotated = part.rotates != 0 ? 2 * p.pairs : 0, still = part.features - rotated;
  for (std::int64_t n = thread(); n < still * part.heads; n += threads()) {
    const std::int64_t h = n / still, f = n % still < part.first ? n % still : n % still + rotated;
    const std::int64_t to = out_token + h * part.out.head_stride + f * part.out.feature_stride;
    if (is_normalised) {
      store_from(part.out.data, part.out.type, to, value_at(h, f));
    } else {
      store(part.out.data, part.out.type, to,
            load(part.x.data, part.x.type, x_token + h * part.x.head_stride + f * part.x.feature_stride));
    }
  }
}

}  // namespace posenc::kernels::cuda
