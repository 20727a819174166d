#include "attention/cuda/forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "attention/cuda/any.h"
#include "posenc/error.h"

namespace posenc::attend::cuda {
namespace {

using namespace kernels::cuda;

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
  if (!beyond_hopper(job, options).empty() || !has_whole_rows(job.out)) {
    if (const std::string why = beyond_any(job, options); !why.empty()) {
      raise(fmt::format("attention: on cuda there is a kernel for {} alone", why));
    }
    forward_any(call, job, inputs, options);
    return;
  }
  const auto* const bias = std::get_if<Bias>(&options.position);
  const PositionParts position = bias != nullptr ? parts_of(call, *bias, job) : PositionParts{};
  const auto [q, k, scale] = ready_of(call, job, inputs, options);

  ForwardParams p{};
  p.out = job.out.data;
  p.out_batch = job.out.batch_stride, p.out_head = job.out.head_stride, p.out_token = job.out.token_stride;
  p.logsumexp = static_cast<float*>(job.logsumexp.data);
  p.lse_batch = job.logsumexp.batch_stride, p.lse_head = job.logsumexp.head_stride;
  p.lse_token = job.logsumexp.token_stride;
  p.bias = position.bias;
  p.tail = position.tail;
  p.counter = zero_counters(call);
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
  const TensorMap q_map = map_of(q, kRowTile), k_map = map_of(k, kKeyTile), v_map = map_of(job.v, kKeyTile);
  void* parameters[] = {const_cast<TensorMap*>(&q_map), const_cast<TensorMap*>(&k_map),
                        const_cast<TensorMap*>(&v_map), &p};
  launch(
      function,
      {std::min<std::int64_t>(multiprocessors(), p.batch_heads * p.row_blocks), 384, static_cast<unsigned>(shared)},
      site.stream, parameters);
}

}  // namespace posenc::attend::cuda
