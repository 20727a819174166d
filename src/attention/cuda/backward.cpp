#include "attention/cuda/backward.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "attention/cuda/forward.h"
#include "attention/cuda/sm80.h"
#include "attention/plan/arguments.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc::attend::cuda {
namespace {

using namespace kernels::cuda;
constexpr std::string_view kVerb = "attention_backward";

std::int32_t narrowed(std::int64_t value) { return static_cast<std::int32_t>(value); }
float* borrow_floats(Call& call, std::int64_t count) {
  return static_cast<float*>(call.borrow(count * sizeof(float)));
}

std::string beyond_backward(const AttentionJob& job, const AttentionCall& options,
                            const HeadTensor<const void>& d_out, const DeviceGradients& gradients) {
  if (std::string why = beyond_hopper(job, options); !why.empty()) return why;
  const auto is_whole = [](const HeadTensor<void>& x) { return x.data == nullptr || has_whole_rows(x); };
  if (!has_whole_rows(d_out) || !is_whole(gradients.dq) || !is_whole(gradients.dk) || !is_whole(gradients.dv)) {
    return "contiguous features, aligned to 16 bytes";
  }
  const auto* const bias = std::get_if<Bias>(options.position);
  if (gradients.parameters.data != nullptr && bias != nullptr && std::holds_alternative<Slopes>(bias->source)) {
    return "no gradient of slopes";
  }
  // The keys before that have no gradient, and need not be finite.
  if (options.packed.empty() && band_of(job, options).least > 0) return "a window that begins at the first key";
  for (std::size_t s = 0; s < options.packed.size(); ++s) {
    const std::int64_t queries = options.packed[s], keys = options.packed_keys[s];
    if (queries == 0 && keys > 0) return "packed sequences that have queries";
    if (options.window > 0 && keys - queries - options.window + 1 > 0) return "a window that begins at the first key";
  }
  return {};
}

// From the caller, or recomputed.
SavedRows saved_of(Call& call, const AttentionJob& job, const AttentionInputs& inputs, const AttentionCall& options,
                   const kernels::Site& site) {
  if (inputs.out.data != nullptr && inputs.logsumexp.data != nullptr) {
    SavedRows saved;
    check_result(kVerb, "out", inputs.out, {inputs.q.type, job.q, job.v.features});
    saved.out = tensor_of(kVerb, "out", inputs.out);
    ConstTensorView sums = inputs.logsumexp;
    sums.shape.push_back(1);
    sums.strides.push_back(1);
    check_result(kVerb, "logsumexp", sums, {DataType::kF32, job.q, 1});
    saved.logsumexp = tensor_of(kVerb, "logsumexp", sums);
    return saved;
  }
  const std::int64_t rows = job.q.batch * job.q.heads * job.q.sequence;
  AttentionJob again = job;
  HeadTensor<void> out;
  out.type = job.q.type, out.batch = job.q.batch, out.heads = job.q.heads, out.sequence = job.q.sequence;
  out.features = job.v.features;
  out.token_stride = out.features, out.head_stride = out.sequence * out.token_stride;
  out.batch_stride = out.heads * out.head_stride;
  HeadTensor<void> sums = out;
  out.data = call.borrow(rows * out.features * size_of(out.type));
  sums.type = DataType::kF32, sums.features = 1;
  sums.token_stride = 1, sums.head_stride = sums.sequence, sums.batch_stride = sums.heads * sums.sequence;
  sums.data = borrow_floats(call, rows);
  again.out = out;
  again.logsumexp = sums;
  forward(again, inputs, options, site);
  const auto readable = [](const HeadTensor<void>& x) {
    return HeadTensor<const void>{x.data,     x.type,         x.batch,       x.heads,        x.sequence,
                                  x.features, x.batch_stride, x.head_stride, x.token_stride, x.feature_stride};
  };
  return {readable(out), readable(sums)};
}

struct Workspace {
  float *neg_lse, *delta, *dq, *d_distances;
};

void prepare_rows(Call& call, const SavedRows& saved, const HeadTensor<const void>& d_out,
                  const PositionParts& position, std::int64_t padded, std::int64_t features, const PackedTile* packed,
                  const Workspace& work) {
  const HeadTensor<const void>& out = saved.out;
  BackwardRowsParams p{};
  p.out = out.data, p.d_out = d_out.data;
  p.out_batch = out.batch_stride, p.out_head = out.head_stride, p.out_token = out.token_stride;
  p.d_out_batch = d_out.batch_stride, p.d_out_head = d_out.head_stride, p.d_out_token = d_out.token_stride;
  p.logsumexp = static_cast<const float*>(saved.logsumexp.data);
  p.lse_batch = saved.logsumexp.batch_stride, p.lse_head = saved.logsumexp.head_stride;
  p.lse_token = saved.logsumexp.token_stride;
  p.bias = position.bias, p.kind = position.kind;
  p.neg_lse = work.neg_lse, p.delta = work.delta, p.dq = work.dq;
  p.packed = packed;
  p.heads = narrowed(out.heads), p.sequence = narrowed(out.sequence), p.padded = narrowed(padded);
  p.features = narrowed(features), p.values = narrowed(out.features);
  p.rows = out.batch * out.heads * padded;
  static KernelSlot slots[2];
  const std::size_t type = out.type == DataType::kF16 ? 1 : 0;
  launch(type == 1 ? "backward_rows_f16" : "backward_rows_bf16", slots[type], {p.rows / 16, 256, 0}, call.stream(),
         p);
}

void write_queries(Call& call, const HeadTensor<void>& dq, const float* sums, double scale, std::int64_t tiles,
                   const PackedTile* packed) {
  if (dq.data == nullptr) return;
  BackwardQueriesParams p{};
  p.sums = sums;
  p.dq = dq.data, p.dq_batch = dq.batch_stride, p.dq_head = dq.head_stride, p.dq_token = dq.token_stride;
  p.scale = static_cast<float>(scale);
  p.heads = narrowed(dq.heads), p.sequence = narrowed(dq.sequence);
  p.packed = packed;
  p.tiles = narrowed(tiles), p.panels = narrowed(dq.features / 64);
  static KernelSlot slots[2];
  const std::size_t type = dq.type == DataType::kF16 ? 1 : 0;
  launch(type == 1 ? "backward_queries_f16" : "backward_queries_bf16", slots[type],
         {dq.batch * dq.heads * p.tiles * ((p.panels + 1) / 2), p.panels == 1 ? 128u : 256u, 0}, call.stream(), p);
}

// Whether some query attends to a key at least `tail` to its left.
bool has_far_keys(const Band& band, const AttentionCall& options) {
  const auto reaches = [&](const Band& of) { return of.origin - std::max(of.least, 1 - of.queries) >= of.tail; };
  if (options.packed.empty()) return reaches(band);
  for (std::size_t s = 0; s < options.packed.size(); ++s) {
    if (options.packed[s] > 0 && reaches(band.of(narrowed(options.packed[s]), narrowed(options.packed_keys[s]))))
      return true;
  }
  return false;
}

void add_to_table(Call& call, const TensorView& gradient, const Bias& form, const Band& band, bool has_far,
                  const float* d_distances) {
  const DistanceMap& map = std::get<DistanceTable>(form.source).axes[0];
  TableGradientParams p{};
  p.d_distances = d_distances;
  p.gradient = gradient.data, p.type = static_cast<std::int32_t>(gradient.type);
  p.row_stride = gradient.strides[0], p.head_stride = gradient.strides[1], p.rows = gradient.shape[0];
  p.entries = call.numbers(std::span<const std::int64_t>(map.entries));
  p.first = map.first, p.count = static_cast<std::int64_t>(map.entries.size());
  p.heads = narrowed(gradient.shape[1]), p.tail = band.tail, p.right_tail = band.right_tail;
  p.has_far = has_far ? 1 : 0;
  launch("table_gradient", {(p.rows * p.heads + 127) / 128, 128, 0}, call.stream(), p);
}

void backward_hopper(Call& call, const AttentionJob& job, const AttentionInputs& inputs,
                     const HeadTensor<const void>& d_out, const SavedRows& saved, const AttentionCall& options,
                     const DeviceGradients& gradients) {
  const auto* const bias = std::get_if<Bias>(options.position);
  const Band band = band_of(job, options);
  const PositionParts position = parts_of(call, job, options, band);
  const auto [q, k, scale] = ready_of(call, job, inputs, options);

  const bool is_packed = position.packed;
  const std::vector<PackedTile> packed = is_packed ? packed_tiles(options) : std::vector<PackedTile>{};
  const PackedTile* const packed_on_gpu = on_gpu(call, packed);
  const std::int64_t tiles = is_packed ? std::ssize(packed) : (q.sequence + kQueryTile - 1) / kQueryTile,
                     padded = tiles * kQueryTile;
  const std::int64_t rows = q.batch * q.heads * padded;
  Workspace work{borrow_floats(call, rows), borrow_floats(call, rows), borrow_floats(call, rows * q.features),
                 nullptr};
  const bool wants_table = position.kind == kDistanceBias && gradients.parameters.data != nullptr;
  const std::size_t table_bytes =
      wants_table ? static_cast<std::size_t>(q.heads) * 2 * kMostDistance * sizeof(float) : 0;
  int* const counters = zero_counters(call, table_bytes);
  if (wants_table) work.d_distances = reinterpret_cast<float*>(reinterpret_cast<char*>(counters) + kZerosAfter);
  prepare_rows(call, saved, d_out, position, padded, q.features, packed_on_gpu, work);

  BackwardParams p{};
  p.neg_lse = work.neg_lse, p.delta = work.delta, p.dq = work.dq, p.d_distances = work.d_distances;
  p.bias = position.bias;
  p.counter = counters;
  p.dk = gradients.dk.data, p.dv = gradients.dv.data;
  p.dk_batch = gradients.dk.batch_stride, p.dk_head = gradients.dk.head_stride;
  p.dk_token = gradients.dk.token_stride;
  p.dv_batch = gradients.dv.batch_stride, p.dv_head = gradients.dv.head_stride;
  p.dv_token = gradients.dv.token_stride;
  p.heads = narrowed(q.heads), p.key_heads = narrowed(k.heads), p.batch_keys = narrowed(k.batch * k.heads);
  p.band = band;
  p.tiles = narrowed(tiles);
  const int key_block = key_block_of(narrowed(q.features));
  p.key_blocks = narrowed((k.sequence + key_block - 1) / key_block);
  if (is_packed) {
    const std::vector<PackedBlock> blocks = packed_blocks(options, band, true, key_block);
    p.packed = on_gpu(call, blocks);
    p.key_blocks = narrowed(std::ssize(blocks));
  }
  p.scale = static_cast<float>(scale);
  p.scale2 = p.scale * 1.4426950408889634f;
  // Heads are grouped so that their q, d_out and dq fit in the cache together.
  constexpr std::int64_t kCache = std::int64_t{64} << 20;
  const std::int64_t bytes = (6 * q.features + 2 * job.v.features) * q.sequence * (q.heads / k.heads);
  p.group = 1;
  while (p.group * 2 * bytes <= kCache && p.group < p.batch_keys) p.group *= 2;

  static KernelSlot slots[2][kVariants][std::size(kHopperSizes)];
  const std::size_t type = q.type == DataType::kF16 ? 1 : 0,
                    size = static_cast<std::size_t>(hopper_size_of(q.features, job.v.features));
  const std::string name = fmt::format("attention_backward_sm90_{}_{}_{}", type == 1 ? "f16" : "bf16",
                                       kVariantNames[position.variant()], q.features);
  const Function function = kernel(name, slots[type][position.variant()][size]);
  const int shared = backward_shared_bytes(position.kind, narrowed(q.features), narrowed(job.v.features));
  check(driver().cuFuncSetAttribute(function, kFunctionDynamicShared, shared), "asking for shared memory");
  const TensorMap q_map = map_of(q, kQueryTile), k_map = map_of(k, key_block), v_map = map_of(job.v, key_block),
                  g_map = map_of(d_out, kQueryTile);
  void* parameters[] = {const_cast<TensorMap*>(&q_map), const_cast<TensorMap*>(&k_map),
                        const_cast<TensorMap*>(&v_map), const_cast<TensorMap*>(&g_map), &p};
  launch(function,
         {std::min<std::int64_t>(multiprocessors(), std::int64_t{p.batch_keys} * p.key_blocks), 384,
          static_cast<unsigned>(shared)},
         call.stream(), parameters);
  write_queries(call, gradients.dq, work.dq, scale, tiles, packed_on_gpu);
  if (wants_table)
    add_to_table(call, gradients.parameters, *bias, p.band, has_far_keys(p.band, options), work.d_distances);
}

}  // namespace

void backward(const AttentionJob& job, const AttentionInputs& inputs, const ConstTensorView& d_out_view,
              const AttentionCall& options, const DeviceGradients& gradients, const kernels::Site& site) {
  Call call(site);
  const HeadTensor<const void> d_out = tensor_of(kVerb, "d_out", d_out_view);
  const bool is_hopper = beyond_backward(job, options, d_out, gradients).empty() && !options.is_repeatable;
  if (const std::string why = is_hopper ? "" : beyond_sm80(job, options); !why.empty()) {
    raise(fmt::format("{}: on cuda there is a kernel only for {}", kVerb, why));
  }
  if (job.q.type == DataType::kF32) raise(fmt::format("{}: on cuda there is a kernel only for f16 and bf16", kVerb));
  if (!options.device_key_lengths.empty()) {
    raise(fmt::format("{}: on cuda there is no kernel for device_key_lengths", kVerb));
  }
  const SavedRows saved = saved_of(call, job, inputs, options, site);
  if (is_hopper && has_whole_rows(saved.out)) {
    backward_hopper(call, job, inputs, d_out, saved, options, gradients);
  } else {
    backward_sm80(call, job, inputs, d_out, saved, options, gradients);
  }
  if (const auto* rotation = std::get_if<Rotation>(options.position)) {
    const Run run{site.stream};
    if (gradients.q.data != nullptr) {
      rotate_backward(gradients.q, positions_in(job.places.queries, gradients.q), *rotation, run);
    }
    if (gradients.k.data != nullptr && !options.keys_are_rotated) {
      rotate_backward(gradients.k, positions_in(job.places.keys, gradients.k), for_keys(*rotation), run);
    }
  }
}

}  // namespace posenc::attend::cuda
