#include "attention/cuda/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "posenc/apply.h"

namespace posenc::attend::cuda {
namespace {

using namespace kernels::cuda;

int attribute_of(int which) {
  DeviceNumber device = 0;
  int value = 0;
  check(driver().cuCtxGetDevice(&device), "asking for the GPU");
  check(driver().cuDeviceGetAttribute(&value, which, device), "asking for an attribute of the GPU");
  return value;
}

using Options = AttentionOptions;
// Any position that parts_of accepts and any scale above 0; axes are heads first here, and rotated q and k are always
// rounded. An option that is not here is left to the other kernels.
constexpr OptionSet kHopperTakes(&Options::position, &Options::axes, &Options::causal, &Options::window,
                                 &Options::scale, &Options::keys_are_rotated, &Options::rounds_rotated,
                                 &Options::is_repeatable, &Options::query_positions, &Options::key_positions,
                                 &Options::packed, &Options::packed_keys, &Options::logsumexp);

std::string beyond_options(const AttentionCall& options) {
  const std::string_view other = options.given.without(kHopperTakes).first_name();
  return other.empty() ? "" : fmt::format("no {}", other);
}

// Of packed sequences: as if each had as many queries as keys (Band::of).
std::int64_t diagonal_of(const AttentionJob& job, const AttentionCall& options) {
  return options.packed.empty() ? job.k.sequence - job.q.sequence : 0;
}
// Distance = query + origin − key, if the bias has consecutive positions.
std::int64_t origin_of(const AttentionJob& job, const AttentionCall& options) {
  return diagonal_of(job, options) + job.places.shift;
}
// The highest key − query of a pair that may be visible.
std::int64_t most_of(const AttentionJob& job, const AttentionCall& options) {
  const std::int64_t diagonal = diagonal_of(job, options);
  if (options.causal) return diagonal;
  return options.window > 0 ? diagonal + std::min<std::int64_t>(options.window, kNever / 2) - 1 : kNever;
}
// Whether some query may attend to a key at a distance below 0.
bool sees_right(const AttentionJob& job, const AttentionCall& options) {
  return origin_of(job, options) < std::min(most_of(job, options), job.k.sequence - 1);
}
// The first entry is for all greater distances, and the last for all smaller ones.
std::int64_t tail_of(const DistanceMap& map) { return std::max<std::int64_t>(0, -map.first); }
std::int64_t right_tail_of(const DistanceMap& map) {
  return std::max<std::int64_t>(0, map.first + static_cast<std::int64_t>(map.entries.size()) - 1);
}

}  // namespace

Band band_of(const AttentionJob& job, const AttentionCall& options) {
  const std::int64_t diagonal = diagonal_of(job, options);
  const std::int64_t least =
      options.window > 0 ? diagonal - std::min<std::int64_t>(options.window, kNever / 2) + 1 : -kNever;
  const auto number = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  Band band{number(job.q.sequence),
            number(job.k.sequence),
            number(least),
            number(most_of(job, options)),
            0,
            -kNever,
            kNever};
  const auto* const bias = std::get_if<Bias>(options.position);
  if (bias == nullptr) return band;
  band.origin = number(origin_of(job, options));
  const bool has_right = sees_right(job, options);
  if (const auto* const table = std::get_if<DistanceTable>(&bias->source)) {
    band.tail = number(tail_of(table->axes[0]));
    if (has_right) band.right_tail = number(right_tail_of(table->axes[0]));
  } else if (has_right) {
    band.tail = band.right_tail = 0;
  }
  return band;
}

int capability() { return 10 * attribute_of(kCapabilityMajor) + attribute_of(kCapabilityMinor); }
int multiprocessors() { return attribute_of(kMultiprocessors); }

std::string beyond_hopper(const AttentionJob& job, const AttentionCall& options) {
  if (const int found = capability(); found != 90) {
    return fmt::format("a GPU of compute capability 9.0, and this one has {}.{}", found / 10, found % 10);
  }
  if (job.q.type != DataType::kF16 && job.q.type != DataType::kBF16) return "f16 or bf16";
  if (hopper_size_of(job.q.features, job.v.features) < 0) {
    return "64, 128 or 256 features, or 192 and values of 128";
  }
  if (std::string why = beyond_options(options); !why.empty()) return why;
  if (!(job.scale > 0)) return "a scale above 0";
  if (job.k.sequence == 0) return "at least one key";
  if (std::max(job.q.sequence, job.k.sequence) > kMostTokens || job.q.batch * job.q.heads > 0xFFFFFF) {
    return "shorter sequences";
  }
  if (!has_whole_rows(job.q) || !has_whole_rows(job.k) || !has_whole_rows(job.v)) {
    return "contiguous features, aligned to 16 bytes";
  }
  if (const auto* bias = std::get_if<Bias>(options.position)) {
    if (!job.places.by_index) return "consecutive positions";
    if (std::abs(job.places.shift) > kMostTokens || std::abs(origin_of(job, options)) > kMostTokens) {
      return "queries and keys that are closer to each other";
    }
    if (const auto* const slopes = std::get_if<Slopes>(&bias->source)) {
      // The product adds slopes in units of q·k, in the type of q.
      const double most = job.q.type == DataType::kF16 ? 0x1p15 : 0x1p100;
      for (const double slope : slopes->slopes) {
        if (!(std::abs(slope) <= most * job.scale)) return "smaller slopes";
      }
      return {};
    }
    const auto* const table = std::get_if<DistanceTable>(&bias->source);
    if (table == nullptr || table->axes.size() != 1) return "slopes and tables by distance of one axis";
    if (tail_of(table->axes[0]) > kMostDistance ||
        (sees_right(job, options) && right_tail_of(table->axes[0]) > kMostDistance)) {
      return fmt::format("a table by distance that ends at {} at the latest", kMostDistance);
    }
  }
  return {};
}

TensorMap map_of(const HeadTensor<const void>& x, int rows) {
  TensorMap map{};
  if (is_measuring()) return map;
  const auto number = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t shape[5] = {64, number(x.sequence), number(x.features / 64), number(x.heads), number(x.batch)};
  // The stride of an axis with one element is never used, but must be valid.
  const auto bytes = [&](std::int64_t stride, std::int64_t count) { return number(count > 1 ? 2 * stride : 16); };
  const std::uint64_t strides[4] = {bytes(x.token_stride, x.sequence), 128, bytes(x.head_stride, x.heads),
                                    bytes(x.batch_stride, x.batch)};
  const std::uint32_t box[5] = {64, static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(x.features / 64), 1,
                                1},
                      steps[5] = {1, 1, 1, 1, 1};
  check(driver().cuTensorMapEncodeTiled(&map, x.type == DataType::kF16 ? kMapF16 : kMapBf16, 5,
                                        const_cast<void*>(x.data), shape, strides, box, steps, 0, kMapSwizzle128,
                                        kMapPromote256, 0),
        "describing a tensor");
  return map;
}

std::vector<PackedBlock> packed_blocks(const AttentionCall& options, const Band& band, bool of_keys, int size) {
  struct Weighed {
    PackedBlock block;
    std::int64_t pairs;  // about as many as it computes
  };
  std::vector<Weighed> all;
  PackedBlock next{};
  for (std::size_t s = 0; s < options.packed.size(); ++s) {
    next.queries = static_cast<std::int32_t>(options.packed[s]);
    next.keys = static_cast<std::int32_t>(options.packed_keys[s]);
    const Band its = band.of(next.queries, next.keys);
    const std::int64_t rows = of_keys ? next.keys : next.queries, others = of_keys ? next.queries : next.keys;
    for (next.block = 0; next.block * size < rows; ++next.block) {
      // The others that a row in the middle of the block attends to, or that attend to it.
      const std::int64_t middle = next.block * size + size / 2;
      const std::int64_t first = of_keys ? middle - its.most : middle + its.least,
                         last = of_keys ? middle - its.least : middle + its.most;
      all.push_back({next, std::min(last, others - 1) - std::max<std::int64_t>(first, 0)});
    }
    next.first_query += next.queries, next.first_key += next.keys;
    next.first_tile += (next.queries + kQueryTile - 1) / kQueryTile;
  }
  std::stable_sort(all.begin(), all.end(), [](const Weighed& a, const Weighed& b) { return a.pairs > b.pairs; });
  std::vector<PackedBlock> blocks;
  blocks.reserve(all.size());
  for (const Weighed& one : all) blocks.push_back(one.block);
  return blocks;
}

std::vector<PackedTile> packed_tiles(const AttentionCall& options) {
  std::vector<PackedTile> tiles;
  std::int64_t first = 0;
  for (const std::int64_t queries : options.packed) {
    for (std::int64_t at = 0; at < queries; at += kQueryTile) {
      tiles.push_back({static_cast<std::int32_t>(first + at),
                       static_cast<std::int32_t>(std::min<std::int64_t>(queries - at, kQueryTile))});
    }
    first += queries;
  }
  return tiles;
}

PositionParts parts_of(Call& call, const AttentionJob& job, const AttentionCall& options, const Band& band) {
  const bool packed = !options.packed.empty(), both = !band.is_one_sided() || job.q.features > 128 || packed;
  const auto* const bias = std::get_if<Bias>(options.position);
  if (bias == nullptr) return {kNoBias, nullptr, false, packed};
  const Bias& form = *bias;
  if (const auto* slopes = std::get_if<Slopes>(&form.source)) {
    const std::vector<float> narrow(slopes->slopes.begin(), slopes->slopes.end());
    return {kSlopeBias, call.numbers(std::span<const float>(narrow)), both, packed};
  }
  const auto& table = std::get<DistanceTable>(form.source);
  const DistanceMap& map = table.axes[0];
  auto* const expanded =
      static_cast<float*>(call.borrow(static_cast<std::size_t>(job.q.heads) * kTableSize * sizeof(float)));
  TableParams weights = call.table(table.weights);
  if (table.weights.data == nullptr) {
    weights = {call.numbers(std::span<const double>(table.values)), kTypeF64, 0, form.heads, 1};
  }
  const ExpandParams p{expanded,
                       weights,
                       call.numbers(std::span<const std::int64_t>(map.entries)),
                       map.first,
                       static_cast<std::int64_t>(map.entries.size()),
                       job.scale,
                       both ? 0 : 1};
  launch("expand_distances", {job.q.heads, 128, 0}, call.stream(), p);
  return {kDistanceBias, expanded, both, packed};
}

int* zero_counters(Call& call, std::size_t more_bytes) {
  const std::size_t bytes = kZerosAfter + more_bytes;
  auto* const counters = static_cast<int*>(call.borrow(bytes));
  if (is_measuring()) return counters;
  check(driver().cuMemsetD8Async(reinterpret_cast<Address>(counters), 0, bytes, static_cast<Stream>(call.stream())),
        "clearing a counter");
  return counters;
}

namespace {

// Memory for x after rotation, dense.
TensorView room_for(Call& call, const ConstTensorView& x) {
  TensorView out(call.borrow(count_of(x.shape) * size_of(x.type)), x.type, x.shape);
  out.device = Device::kCuda;
  return out;
}
HeadTensor<const void> dense_like(const HeadTensor<const void>& x, const TensorView& at) {
  HeadTensor<const void> dense = x;
  dense.data = at.data;
  dense.token_stride = x.features;
  dense.head_stride = x.sequence * dense.token_stride;
  dense.batch_stride = x.heads * dense.head_stride;
  dense.feature_stride = 1;
  return dense;
}
}  // namespace

Positions positions_in(const TokenPositions& at, const ConstTensorView& x) {
  Positions given{.first = at.first, .axes = at.axes};
  if (at.ids != nullptr) {
    const std::int64_t batch = x.shape.rank > 3 && at.batch_stride != 0 ? x.shape[0] : 1;
    given.ids = {at.ids, static_cast<std::size_t>(at.axes * batch * x.shape.back(1))};
    if (at.on_device) given.device = Device::kCuda;
  }
  return given;
}

QueriesAndKeys ready_of(Call& call, const AttentionJob& job, const AttentionInputs& inputs,
                        const AttentionCall& options) {
  QueriesAndKeys ready{job.q, job.k, job.scale};
  const auto* const rotation = std::get_if<Rotation>(options.position);
  if (rotation == nullptr) return ready;
  ready.scale *= rotation->softmax_factor;
  const Run run{call.stream()};
  const TensorView q = room_for(call, inputs.q);
  ready.q = dense_like(job.q, q);
  const TokenPositions &at_queries = job.places.queries, &at_keys = job.places.keys;
  const Positions for_q = positions_in(at_queries, inputs.q);
  if (options.keys_are_rotated) {
    rotate(q, inputs.q, for_q, *rotation, run);
    return ready;
  }
  const TensorView k = room_for(call, inputs.k);
  ready.k = dense_like(job.k, k);
  const bool is_one_launch = at_queries.ids == nullptr && at_keys.ids == nullptr &&
                             at_queries.first == at_keys.first && job.q.sequence == job.k.sequence &&
                             inputs.q.shape.rank == inputs.k.shape.rank;
  if (is_one_launch) {
    rotate(QueryKey<TensorView>{q, k}, QueryKey<ConstTensorView>{inputs.q, inputs.k}, for_q, *rotation, run);
  } else {
    rotate(q, inputs.q, for_q, *rotation, run);
    rotate(k, inputs.k, positions_in(at_keys, inputs.k), for_keys(*rotation), run);
  }
  return ready;
}

}  // namespace posenc::attend::cuda
