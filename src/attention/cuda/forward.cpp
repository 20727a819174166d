#include "attention/cuda/forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "attention/cuda/params.h"
#include "kernels/cuda/call.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc::attend::cuda {
namespace {

using namespace kernels::cuda;

// What the kernel cannot do, in words; "" where it can.
std::string refusal(const AttentionJob& job, const AttentionOptions& options) {
  int major = 0, minor = 0;
  DeviceNumber device = 0;
  check(driver().cuCtxGetDevice(&device), "asking for the GPU");
  check(driver().cuDeviceGetAttribute(&major, kCapabilityMajor, device), "asking for the capability");
  check(driver().cuDeviceGetAttribute(&minor, kCapabilityMinor, device), "asking for the capability");
  if (major != 9 || minor != 0)
    return fmt::format("a GPU of compute capability 9.0, and this one has {}.{}", major, minor);
  if (job.q.type != DataType::kF16 && job.q.type != DataType::kBF16) return "f16 or bf16";
  if (job.v.features != job.q.features || (job.q.features != 64 && job.q.features != 128))
    return "64 or 128 features";
  if (!options.causal) return "causal attention";
  if (job.q.sequence != job.k.sequence) return "as many queries as keys";
  if (options.window != 0 || !options.query_lengths.empty() || !options.key_lengths.empty() ||
      !options.packed.empty() || !options.key_mask.empty()) {
    return "no window, lengths, packed sequences or mask";
  }
  if (options.query_positions || options.key_positions) return "positions 0, 1, 2 …";
  if (options.weights.data != nullptr) return "no weights to be written";
  if (!(job.scale > 0)) return "a scale above 0";
  if (job.q.sequence > 0x7FFFFF || job.q.batch * job.q.heads > 0xFFFFFF) return "shorter sequences";
  const auto is_whole = [](const auto& x) {
    return reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && x.feature_stride == 1 && x.token_stride % 8 == 0 &&
           x.head_stride % 8 == 0 && x.batch_stride % 8 == 0 && x.token_stride > 0 && x.head_stride >= 0 &&
           x.batch_stride >= 0;
  };
  if (!is_whole(job.q) || !is_whole(job.k) || !is_whole(job.v) || !is_whole(job.out)) {
    return "contiguous features, aligned to 16 bytes";
  }
  return {};
}

TensorMap map_of(const HeadTensor<const void>& x) {
  TensorMap map{};
  const auto number = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t shape[5] = {64, number(x.sequence), number(x.features / 64), number(x.heads), number(x.batch)};
  // An axis of one element is never stepped along, but its stride must be a valid one.
  const auto bytes = [&](std::int64_t stride, std::int64_t count) { return number(count > 1 ? 2 * stride : 16); };
  const std::uint64_t strides[4] = {bytes(x.token_stride, x.sequence), 128, bytes(x.head_stride, x.heads),
                                    bytes(x.batch_stride, x.batch)};
  const std::uint32_t box[5] = {64, 128, static_cast<std::uint32_t>(x.features / 64), 1, 1},
                      steps[5] = {1, 1, 1, 1, 1};
  check(driver().cuTensorMapEncodeTiled(&map, x.type == DataType::kF16 ? kMapF16 : kMapBf16, 5,
                                        const_cast<void*>(x.data), shape, strides, box, steps, 0, kMapSwizzle128,
                                        kMapPromote256, 0),
        "describing a tensor");
  return map;
}

// The position's part: which kernel, and its bias.
struct PositionParts {
  BiasKind kind = kNoBias;
  const float* bias = nullptr;
  std::int32_t tail = 0;
};

PositionParts parts_of(Call& call, const Bias& form, const AttentionJob& job) {
  if (const auto* slopes = std::get_if<Slopes>(&form.source)) {
    const std::vector<float> narrow(slopes->slopes.begin(), slopes->slopes.end());
    return {kSlopeBias, call.numbers(std::span<const float>(narrow)), 0};
  }
  const auto* table = std::get_if<DistanceTable>(&form.source);
  if (table == nullptr || table->axes.size() != 1) {
    raise("attention: on cuda there is a kernel for slopes and for tables by distance of one axis alone");
  }
  const DistanceMap& map = table->axes[0];
  const std::int64_t tail = std::max<std::int64_t>(0, -map.first);  // the first entry is for all that are further
  if (tail > kMostDistance) {
    raise(fmt::format("attention: on cuda a table by distance ends at {} at the latest, but this one at {}",
                      kMostDistance, tail));
  }
  auto* const expanded =
      static_cast<float*>(call.borrow(static_cast<std::size_t>(job.q.heads) * kTableSize * sizeof(float)));
  TableParams weights = call.table(table->weights);
  if (table->weights.data == nullptr) {
    weights = {call.numbers(std::span<const double>(table->values)), kTypeF64, 0, form.heads, 1};
  }
  const ExpandParams p{expanded,
                       weights,
                       call.numbers(std::span<const std::int64_t>(map.entries)),
                       map.first,
                       static_cast<std::int64_t>(map.entries.size()),
                       static_cast<std::int32_t>(tail),
                       job.scale};
  launch("expand_distances", {job.q.heads, 128, 0}, call.stream(), p);
  return {kDistanceBias, expanded, static_cast<std::int32_t>(tail)};
}

// x after rotation, dense, in memory that the call borrows.
HeadTensor<const void> rotated(Call& call, const ConstTensorView& x, const HeadTensor<const void>& shape,
                               const Rotation& form) {
  const Extents extents = {shape.batch, shape.heads, shape.sequence, shape.features};
  TensorView out(call.borrow(static_cast<std::size_t>(count_of(extents) * size_of(shape.type))), shape.type, x.shape);
  out.device = Device::kCuda;
  rotate(out, x, {}, form, {call.stream()});
  HeadTensor<const void> dense = shape;
  dense.data = out.data;
  dense.token_stride = shape.features;
  dense.head_stride = shape.sequence * dense.token_stride;
  dense.batch_stride = shape.heads * dense.head_stride;
  dense.feature_stride = 1;
  return dense;
}

constexpr std::string_view kNames[2][3][2] = {
    {{"attention_sm90_bf16_none_64", "attention_sm90_bf16_none_128"},
     {"attention_sm90_bf16_slopes_64", "attention_sm90_bf16_slopes_128"},
     {"attention_sm90_bf16_distances_64", "attention_sm90_bf16_distances_128"}},
    {{"attention_sm90_f16_none_64", "attention_sm90_f16_none_128"},
     {"attention_sm90_f16_slopes_64", "attention_sm90_f16_slopes_128"},
     {"attention_sm90_f16_distances_64", "attention_sm90_f16_distances_128"}}};

}  // namespace

void forward(const AttentionJob& job, const AttentionInputs& inputs, const AttentionOptions& options,
             const kernels::Site& site) {
  Call call(site);
  if (const std::string why = refusal(job, options); !why.empty()) {
    raise(fmt::format("attention: on cuda there is a kernel for {} alone", why));
  }
  HeadTensor<const void> q = job.q, k = job.k;
  double scale = job.scale;
  PositionParts position;
  if (const auto* bias = std::get_if<Bias>(&options.position)) {
    position = parts_of(call, *bias, job);
  } else if (const auto* rotation = std::get_if<Rotation>(&options.position)) {
    scale *= rotation->softmax_factor;
    q = rotated(call, inputs.q, q, *rotation);
    if (!options.keys_are_rotated) k = rotated(call, inputs.k, k, for_keys(*rotation));
  } else if (std::holds_alternative<Addition>(options.position)) {
    raise("attention: an addition belongs to the embeddings, before q and k are made: add it to them instead");
  }

  ForwardParams p{};
  p.out = job.out.data;
  p.out_batch = job.out.batch_stride, p.out_head = job.out.head_stride, p.out_token = job.out.token_stride;
  p.logsumexp = static_cast<float*>(job.logsumexp.data);
  p.lse_batch = job.logsumexp.batch_stride, p.lse_head = job.logsumexp.head_stride;
  p.lse_token = job.logsumexp.token_stride;
  p.bias = position.bias;
  p.tail = position.tail;
  p.counter = static_cast<int*>(call.borrow(2 * sizeof(int)));
  check(driver().cuMemsetD8Async(reinterpret_cast<Address>(p.counter), 0, 2 * sizeof(int),
                                 static_cast<Stream>(site.stream)),
        "clearing a counter");
  const auto number = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  p.heads = number(q.heads), p.key_heads = number(k.heads), p.batch_heads = number(q.batch * q.heads);
  p.sequence = number(q.sequence);
  p.row_blocks = number((q.sequence + kRowTile - 1) / kRowTile);
  p.scale = static_cast<float>(scale);
  // Heads whose keys and values fit the cache together are taken together.
  constexpr std::int64_t kCache = std::int64_t{32} << 20;
  p.group = 1;
  while (p.group * 8 * q.sequence * q.features <= kCache && p.group < p.batch_heads) p.group *= 2;

  static KernelSlot slots[2][3][2];
  const std::size_t type = q.type == DataType::kF16 ? 1 : 0, size = q.features == 128 ? 1 : 0;
  const Function function = kernel(kNames[type][position.kind][size], slots[type][position.kind][size]);
  // Twice q, two tiles each of k and v, the tables, and room to align them.
  const int shared = size == 1 ? 203776 : 105472;
  check(driver().cuFuncSetAttribute(function, kFunctionDynamicShared, shared), "asking for shared memory");
  DeviceNumber device = 0;
  int multiprocessors = 0;
  check(driver().cuCtxGetDevice(&device), "asking for the GPU");
  check(driver().cuDeviceGetAttribute(&multiprocessors, kMultiprocessors, device), "asking for multiprocessors");
  const TensorMap q_map = map_of(q), k_map = map_of(k), v_map = map_of(job.v);
  void* parameters[] = {const_cast<TensorMap*>(&q_map), const_cast<TensorMap*>(&k_map),
                        const_cast<TensorMap*>(&v_map), &p};
  launch(function,
         {std::min<std::int64_t>(multiprocessors, p.batch_heads * p.row_blocks), 384, static_cast<unsigned>(shared)},
         site.stream, parameters);
}

}  // namespace posenc::attend::cuda
