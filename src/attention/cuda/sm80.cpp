#include "attention/cuda/sm80.h"

#include <fmt/format.h>

#include <algorithm>

#include "attention/cuda/sm80_params.h"

namespace posenc::attend::cuda {
namespace {

using namespace kernels::cuda;

constexpr std::int64_t kMostFeatures = 256;

std::int32_t narrow_of(std::int64_t value) { return static_cast<std::int32_t>(value); }

template <class Void> Sm80Tensor sm80_tensor(const HeadTensor<Void>& x) {
  if (x.data == nullptr) return {};
  return {const_cast<void*>(static_cast<const void*>(x.data)),
          x.batch_stride,
          x.head_stride,
          x.token_stride,
          x.feature_stride,
          narrow_of(x.features),
          has_whole_rows(x) && x.features % 8 == 0 ? 1 : 0,
          nullptr,
          0,
          0,
          0};
}

// Gives k and v the pages that hold their tokens, if they are pools of pages.
void take_pages(Call& call, const HeadTensor<const void>& keys, bool is_on_device, Sm80Tensor& k, Sm80Tensor& v) {
  if (keys.pages == nullptr) return;
  const auto size = static_cast<std::size_t>(keys.batch * keys.page_row) * sizeof(std::int32_t);
  k.pages = v.pages = is_on_device ? keys.pages : static_cast<const std::int32_t*>(call.copied(keys.pages, size));
  k.page_count = v.page_count = narrow_of(keys.page_count);
  k.page_row = v.page_row = narrow_of(keys.page_row);
  k.page_tokens = v.page_tokens = narrow_of(keys.page_tokens);
}

// call_of has rejected what no kernel takes; rotated q and k are always rounded.
std::string beyond_sm80_options(const AttentionCall& options) {
  if ((!options.block_table.empty() || !options.device_block_table.empty()) && options.rotation != nullptr &&
      !options.keys_are_rotated) {
    return "keys that are rotated already, where the cache is paged";
  }
  return {};
}

KeyRangeParams key_range_params(Call& call, const AttentionJob& job, const AttentionCall& options) {
  KeyRangeParams p{};
  p.offset = narrow_of(job.k.sequence - job.q.sequence);
  p.is_causal = options.causal ? 1 : 0;
  p.window = narrow_of(std::min<std::int64_t>(options.window, job.k.sequence + job.q.sequence));
  const bool is_plain =
      options.query_lengths.empty() && options.key_lengths.empty() && options.packed.empty() && options.chunk == 0;
  if (!is_plain) {
    std::vector<std::int32_t> key_ranges;
    key_ranges.reserve(3 * job.key_ranges.size());
    for (const KeyRange& one : job.key_ranges) {
      for (const std::int64_t number : {one.begin, one.end, one.diagonal}) key_ranges.push_back(narrow_of(number));
    }
    // For this call only: lengths grow from step to step.
    p.key_ranges =
        static_cast<const std::int32_t*>(call.copied(key_ranges.data(), key_ranges.size() * sizeof(key_ranges[0])));
    p.batch_stride = job.key_range_stride;
  }
  if (job.key_mask != nullptr) {
    std::vector<std::uint8_t> mask;
    for (std::int64_t n = 0; n < job.k.batch * job.k.sequence; ++n) mask.push_back(job.key_mask[n] != 0 ? 1 : 0);
    p.key_mask = static_cast<const std::uint8_t*>(call.copied(mask.data(), mask.size()));
  }
  p.key_lengths = options.device_key_lengths.empty() ? nullptr : options.device_key_lengths.data();
  p.fault = call.fault();
  return p;
}

Sm80BiasParams bias_params(Call& call, const AttentionJob& job, const AttentionCall& options) {
  Sm80BiasParams p{};
  const auto* const bias = std::get_if<Bias>(options.position);
  if (bias == nullptr) return p;
  p.by_index = job.places.by_index ? 1 : 0;
  p.shift = job.places.shift;
  if (!job.places.by_index) {
    p.queries = call.positions(job.places.queries);
    p.keys = call.positions(job.places.keys);
  }
  if (const auto* slopes = std::get_if<Slopes>(&bias->source)) {
    p.kind = kSm80Slopes;
    const std::vector<float> narrow(slopes->slopes.begin(), slopes->slopes.end());
    p.slopes = call.numbers(std::span<const float>(narrow));
    return p;
  }
  const auto& table = std::get<DistanceTable>(bias->source);
  const DistanceMap& map = table.axes[0];
  p.kind = kSm80Table;
  p.first = map.first;
  p.count = static_cast<std::int64_t>(map.entries.size());
  SpreadTableParams spread_params{};
  spread_params.out =
      static_cast<float*>(call.borrow(static_cast<std::size_t>(p.count * job.q.heads) * sizeof(float)));
  spread_params.rows = static_cast<std::int32_t*>(call.borrow(p.count * sizeof(std::int32_t)));
  spread_params.table = call.table(table.weights);
  if (table.weights.data == nullptr) {
    spread_params.table = {call.numbers(std::span<const double>(table.values)), kTypeF64, 0, bias->heads, 1};
  }
  spread_params.entries = call.numbers(std::span<const std::int64_t>(map.entries));
  spread_params.count = p.count;
  spread_params.heads = narrow_of(job.q.heads);
  launch("spread_table", spread(p.count * job.q.heads, 128), call.stream(), spread_params);
  p.table = spread_params.out;
  p.rows = spread_params.rows;
  return p;
}

int padded_features(const AttentionJob& job) {
  const std::int64_t features = std::max(job.q.features, job.v.features);
  return features <= 64 ? 64 : features <= 128 ? 128 : 256;
}
// The kernel for this number of features, with its shared memory requested.
void launch_sm80(std::string_view name, const AttentionJob& job, std::string_view part, const LaunchShape& shape,
                 void* stream, void* params) {
  const int padded = padded_features(job);
  const std::string_view type = job.q.type == DataType::kF32 ? "f32" : job.q.type == DataType::kF16 ? "f16" : "bf16";
  const Function function = kernel(fmt::format("{}_{}_{}{}", name, type, padded, padded == 256 ? part : ""));
  check(driver().cuFuncSetAttribute(function, kFunctionDynamicShared, static_cast<int>(shape.shared_bytes)),
        "asking for shared memory");
  void* parameters[] = {params};
  launch(function, shape, stream, parameters);
}
// What all kernels read.
void set_inputs(Sm80Inputs& p, Call& call, const AttentionJob& job, const QueriesAndKeys& ready,
                const AttentionCall& options) {
  const auto& [q, k, scale] = ready;
  p.q = sm80_tensor(q), p.k = sm80_tensor(k), p.v = sm80_tensor(job.v);
  take_pages(call, k, !options.device_block_table.empty(), p.k, p.v);
  p.key_range = key_range_params(call, job, options);
  p.bias = bias_params(call, job, options);
  p.batch = narrow_of(q.batch), p.heads = narrow_of(q.heads), p.key_heads = narrow_of(k.heads);
  p.queries = narrow_of(q.sequence), p.keys = narrow_of(k.sequence);
  p.scale = static_cast<float>(scale);
}
void set_outputs(Sm80Outputs& p, const AttentionJob& job) {
  p.out = sm80_tensor(job.out);
  p.logsumexp = static_cast<float*>(job.logsumexp.data);
  p.lse_batch = job.logsumexp.batch_stride, p.lse_head = job.logsumexp.head_stride;
  p.lse_token = job.logsumexp.token_stride;
}

void decode(Call& call, const AttentionJob& job, const QueriesAndKeys& ready, const AttentionCall& options) {
  const HeadTensor<const void>&q = ready.q, &k = ready.k;
  DecodeParams p{};
  set_inputs(p, call, job, ready, options);
  set_outputs(p, job);
  // Enough blocks to keep every multiprocessor busy to the end, each with enough keys to be worth its launch.
  constexpr std::int64_t kBlocks = 6, kLeastKeys = 256;
  const std::int64_t pairs = q.batch * k.heads;
  const std::int64_t wanted = (kBlocks * multiprocessors() + pairs - 1) / pairs;
  p.splits = narrow_of(std::clamp<std::int64_t>((k.sequence + kLeastKeys - 1) / kLeastKeys, 1, wanted));
  constexpr std::int64_t kStep = std::int64_t{kDecodeKeys} * kDecodeWarps;
  p.keys_of_split = narrow_of(((k.sequence + p.splits - 1) / p.splits + kStep - 1) / kStep * kStep);
  p.parts = p.splits * kDecodeWarps;
  const std::int64_t rows = q.batch * q.heads * q.sequence;
  p.part_sums = static_cast<float*>(call.borrow(static_cast<std::size_t>(rows * p.parts) * 2 * sizeof(float)));
  p.parts_out =
      static_cast<float*>(call.borrow(static_cast<std::size_t>(rows * p.parts * q.features) * sizeof(float)));
  const bool is_f16 = q.type == DataType::kF16;
  static KernelSlot slots[2][2][2], joins[2];
  const std::size_t type = is_f16 ? 1 : 0, size = q.features == 128 ? 1 : 0;
  const std::size_t is_half = q.sequence * (q.heads / k.heads) <= 8 ? 1 : 0;
  const int shared = decode_bytes(narrow_of(q.features));
  const Function function =
      kernel(fmt::format("decode_sm80_{}_{}_{}", is_f16 ? "f16" : "bf16", q.features, is_half == 1 ? 8 : 16),
             slots[type][size][is_half]);
  check(driver().cuFuncSetAttribute(function, kFunctionDynamicShared, shared), "asking for shared memory");
  void* parameters[] = {&p};
  launch(function, {pairs * p.splits, 32 * kDecodeWarps, static_cast<unsigned>(shared)}, call.stream(), parameters);
  launch(is_f16 ? "decode_join_f16" : "decode_join_bf16", joins[type], {rows, static_cast<unsigned>(q.features), 0},
         call.stream(), p);
}

}  // namespace

bool is_decoding(const AttentionJob& job, const QueriesAndKeys& ready) {
  constexpr std::int64_t kFewestKeys = 128;
  const std::int64_t features = job.q.features;
  return job.q.type != DataType::kF32 && job.v.features == features && (features == 64 || features == 128) &&
         job.q.sequence * (job.q.heads / job.k.heads) <= kDecodeRows && job.k.sequence >= kFewestKeys &&
         (job.k.pages == nullptr || job.k.page_tokens % kDecodeKeys == 0) && has_whole_rows(ready.q) &&
         has_whole_rows(ready.k) && has_whole_rows(job.v);
}

std::string beyond_sm80(const AttentionJob& job, const AttentionCall& options) {
  if (const int found = capability(); found < 80) {
    return fmt::format("a GPU from compute capability 8.0 on, and this one has {}.{}", found / 10, found % 10);
  }
  if (job.q.type == DataType::kF64) return "f32, f16 and bf16";
  if (job.q.features > kMostFeatures || job.v.features > kMostFeatures) return "256 features at most";
  if (std::string why = beyond_sm80_options(options); !why.empty()) return why;
  if (std::max(job.q.sequence, job.k.sequence) > 0x3FFFFFFF || job.q.batch * job.q.heads > 0xFFFFFF) {
    return "shorter sequences";
  }
  const auto* const bias = std::get_if<Bias>(options.position);
  if (bias == nullptr || std::holds_alternative<Slopes>(bias->source)) return {};
  const auto* const table = std::get_if<DistanceTable>(&bias->source);
  return table != nullptr && table->axes.size() == 1 ? "" : "slopes and tables by distance of one axis";
}

void forward_sm80(Call& call, const AttentionJob& job, const AttentionInputs& inputs, const AttentionCall& options) {
  const QueriesAndKeys ready = ready_of(call, job, inputs, options);
  if (is_decoding(job, ready)) {
    decode(call, job, ready, options);
    return;
  }
  const HeadTensor<const void>& q = ready.q;
  Sm80Params p{};
  set_inputs(p, call, job, ready, options);
  set_outputs(p, job);
  if (q.type == DataType::kF32) {
    const std::int64_t rows = wide_rows(padded_features(job));
    p.row_blocks = narrow_of((q.sequence + rows - 1) / rows);
    const auto wide = static_cast<unsigned>(wide_bytes(padded_features(job)));
    launch_sm80("attention", job, "", {q.batch * q.heads * p.row_blocks, 256, wide}, call.stream(), &p);
    return;
  }
  p.row_blocks = narrow_of((q.sequence + kSm80Rows - 1) / kSm80Rows);
  const auto shared = static_cast<unsigned>(sm80_forward_bytes(padded_features(job)));
  launch_sm80("attention_sm80", job, "", {q.batch * q.heads * p.row_blocks, 128, shared}, call.stream(), &p);
}

void backward_sm80(Call& call, const AttentionJob& job, const AttentionInputs& inputs,
                   const HeadTensor<const void>& d_out, const SavedRows& saved, const AttentionCall& options,
                   const DeviceGradients& gradients) {
  const QueriesAndKeys ready = ready_of(call, job, inputs, options);
  const HeadTensor<const void>&q = ready.q, &k = ready.k;
  const std::int64_t rows = q.batch * q.heads * q.sequence;
  const auto floats = [&](std::int64_t count) {
    return static_cast<float*>(
        call.borrow(static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(float)));
  };
  Sm80RowsParams of_rows{};
  of_rows.out = sm80_tensor(saved.out), of_rows.d_out = sm80_tensor(d_out);
  of_rows.logsumexp = static_cast<const float*>(saved.logsumexp.data);
  of_rows.lse_batch = saved.logsumexp.batch_stride, of_rows.lse_head = saved.logsumexp.head_stride;
  of_rows.lse_token = saved.logsumexp.token_stride;
  of_rows.neg_lse = floats(rows), of_rows.delta = floats(rows);
  of_rows.heads = narrow_of(q.heads), of_rows.queries = narrow_of(q.sequence), of_rows.rows = rows;
  if (rows > 0) {
    launch(q.type == DataType::kF16 ? "sm80_rows_f16" : "sm80_rows_bf16", {(rows + 3) / 4, 128, 0}, call.stream(),
           of_rows);
  }

  Sm80BackwardParams p{};
  set_inputs(p, call, job, ready, options);
  p.d_out = sm80_tensor(d_out);
  p.dq = sm80_tensor(gradients.dq), p.dk = sm80_tensor(gradients.dk), p.dv = sm80_tensor(gradients.dv);
  p.neg_lse = of_rows.neg_lse, p.delta = of_rows.delta;
  p.row_blocks = narrow_of((q.sequence + kSm80Rows - 1) / kSm80Rows);
  p.key_blocks = narrow_of((k.sequence + kSm80Rows - 1) / kSm80Rows);
  const TensorView& parameters = gradients.parameters;
  if (parameters.data != nullptr) {
    p.sum_rows = p.bias.kind == kSm80Table ? narrow_of(parameters.shape[0]) : 1;
    const std::size_t bytes = static_cast<std::size_t>(p.sum_rows * q.heads) * sizeof(double);
    p.sums = static_cast<double*>(call.borrow(bytes));
    if (!is_measuring())
      check(driver().cuMemsetD8Async(reinterpret_cast<Address>(p.sums), 0, bytes, static_cast<Stream>(call.stream())),
            "clearing sums");
  }
  const auto shared = static_cast<unsigned>(sm80_backward_bytes(padded_features(job)));
  if (p.row_blocks > 0 && (p.dq.data != nullptr || p.sums != nullptr)) {
    launch_sm80("sm80_queries", job, "", {q.batch * q.heads * p.row_blocks, 128, shared}, call.stream(), &p);
  }
  const LaunchShape of_keys{k.batch * k.heads * p.key_blocks, 128, shared};
  if (p.key_blocks > 0 && padded_features(job) == 256) {
    if (p.dv.data != nullptr) launch_sm80("sm80_keys", job, "_dv", of_keys, call.stream(), &p);
    if (p.dk.data != nullptr) launch_sm80("sm80_keys", job, "_dk", of_keys, call.stream(), &p);
  } else if (p.key_blocks > 0 && (p.dv.data != nullptr || p.dk.data != nullptr)) {
    launch_sm80("sm80_keys", job, "", of_keys, call.stream(), &p);
  }
  if (p.sums == nullptr) return;
  const bool is_table = parameters.shape.rank == 2;
  const AddSumsParams sums{p.sums,
                           parameters.data,
                           static_cast<std::int32_t>(parameters.type),
                           is_table ? parameters.strides[0] : 0,
                           parameters.strides[parameters.shape.rank - 1],
                           p.sum_rows,
                           p.heads};
  launch("add_sums", spread(std::int64_t{p.sum_rows} * p.heads, 128), call.stream(), sums);
}

}  // namespace posenc::attend::cuda
