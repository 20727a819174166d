#include "attention/cuda/forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "attention/cuda/sm80.h"
#include "kernels/checks.h"
#include "kernels/rotation_element.h"
#include "posenc/error.h"

namespace posenc::attend::cuda {
namespace {

using namespace kernels::cuda;

constexpr std::size_t kSizes = std::size(kHopperSizes);
const std::string& name_of(std::size_t type, std::size_t variant, std::size_t size) {
  static const auto names = [] {
    std::array<std::array<std::array<std::string, kSizes>, kVariants>, 2> all;
    for (std::size_t n = 0; n < kVariants; ++n) {
      for (std::size_t m = 0; m < kSizes; ++m) {
        const std::string rest = fmt::format("{}_{}", kVariantNames[n], kHopperSizes[m].features);
        all[0][n][m] = "attention_sm90_bf16_" + rest;
        all[1][n][m] = "attention_sm90_f16_" + rest;
      }
    }
    return all;
  }();
  return names[type][variant][size];
}

// Whether the kernel can rotate q as it is loaded: all features, in a layout that does not change, by exact angles at
// the same positions as the keys.
bool rotates_inside(const Rotation& form, const AttentionJob& job) {
  const TokenPositions &queries = job.places.queries, &keys = job.places.keys;
  return job.q.features <= 128 && !has_table(form) && 2 * pairs_of(form) == job.q.features && form.first_dim == 0 &&
         form.blocks == 1 && (form.layout == PairLayout::kHalves || form.layout == PairLayout::kInterleaved) &&
         !has_growth(form) && !has_float32_angles(form) &&
         kernels::arithmetic_type(form, job.q.type) == DataType::kF32 &&
         kernels::table_type(form, DataType::kF32) == DataType::kF32 && !queries.has_ids() && !keys.has_ids() &&
         queries.first == keys.first && job.q.sequence == job.k.sequence;  // packed sequences have ids
}

// Keys before the first that some query attends to need not be finite, so no tile may hold them.
void drop_unseen(Band& band, HeadTensor<const void>& k, HeadTensor<const void>& v) {
  const std::int32_t unseen = std::max(band.least, 0);
  if (unseen == 0) return;
  band.keys -= unseen, band.least -= unseen, band.most -= unseen, band.origin -= unseen;
  for (HeadTensor<const void>* x : {&k, &v}) {
    x->data = static_cast<const std::uint16_t*>(x->data) + unseen * x->token_stride;
    x->sequence -= unseen;
  }
}

// Rotates k into borrowed memory and computes the cosines and sines for q. False if the kernels do not support some
// part of it; nothing has been done then.
bool rotate_keys(Call& call, const AttentionJob& job, const Rotation& form, const kernels::Site& site,
                 HeadTensor<const void>& k, ForwardParams& p) {
  const kernels::Tokens tokens{k.batch, k.sequence};
  kernels::rotary_positions_of("attention", {.first = job.places.keys.first}, form, tokens);  // checks the form
  kernels::RotateJob rotation;
  kernels::RotateJob::Part& part = rotation.parts[0];
  part.x = k;
  part.out.type = k.type, part.out.batch = k.batch, part.out.heads = k.heads, part.out.sequence = k.sequence;
  part.out.features = k.features;
  part.out.token_stride = k.features, part.out.head_stride = k.sequence * k.features;
  part.out.batch_stride = k.heads * part.out.head_stride;
  const std::int64_t rows = k.batch * k.heads * k.sequence;
  part.out.data = call.borrow(rows * k.features * size_of(k.type));
  rotation.positions = job.places.keys;
  rotation.form = &form;
  rotation.site = site;
  auto* const cos_sin = static_cast<float*>(
      call.borrow(static_cast<std::size_t>(std::int64_t{p.row_blocks} * kRowTile * k.features) * sizeof(float)));
  if (!rotate_and_keep(call, rotation, cos_sin)) return false;
  p.cos_sin = cos_sin;
  p.is_interleaved = form.layout == PairLayout::kInterleaved ? 1 : 0;
  k.data = part.out.data;
  k.batch_stride = part.out.batch_stride, k.head_stride = part.out.head_stride, k.token_stride = k.features;
  k.feature_stride = 1;
  return true;
}

}  // namespace

void forward(const AttentionJob& job, const AttentionInputs& inputs, const AttentionCall& options,
             const kernels::Site& site) {
  Call call(site);
  if (!beyond_hopper(job, options).empty() || !has_whole_rows(job.out) || is_decoding(job, {job.q, job.k, 1})) {
    if (const std::string why = beyond_sm80(job, options); !why.empty()) {
      raise(fmt::format("attention: the CUDA backend supports only {}", why));
    }
    forward_sm80(call, job, inputs, options);
    return;
  }
  ForwardParams p{};
  p.band = band_of(job, options);
  PositionParts position = parts_of(call, job, options, p.band);
  p.counter = zero_counters(call);  // before the rotation, so that attention follows it directly
  p.row_blocks = static_cast<std::int32_t>((job.q.sequence + kRowTile - 1) / kRowTile);
  if (!options.packed.empty()) {
    const std::vector<PackedBlock> blocks = packed_blocks(options, p.band, false, kRowTile);
    p.packed = on_gpu(call, blocks);
    p.row_blocks = static_cast<std::int32_t>(blocks.size());
  }
  QueriesAndKeys ready{job.q, job.k, job.scale};
  const auto* const rotation = std::get_if<Rotation>(options.position);
  if (rotation != nullptr && !options.keys_are_rotated && can_overlap() && rotates_inside(*rotation, job) &&
      rotate_keys(call, job, *rotation, site, ready.k, p)) {
    ready.scale *= rotation->softmax_factor;
    position.kind = kRotation;
  } else {
    ready = ready_of(call, job, inputs, options);
  }
  auto& [q, k, scale] = ready;
  HeadTensor<const void> v = job.v;
  if (options.packed.empty()) drop_unseen(p.band, k, v);

  p.out = job.out.data;
  p.out_batch = job.out.batch_stride, p.out_head = job.out.head_stride, p.out_token = job.out.token_stride;
  p.logsumexp = static_cast<float*>(job.logsumexp.data);
  p.lse_batch = job.logsumexp.batch_stride, p.lse_head = job.logsumexp.head_stride;
  p.lse_token = job.logsumexp.token_stride;
  p.bias = position.bias;
  const auto number = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  p.heads = number(q.heads), p.key_heads = number(k.heads), p.batch_heads = number(q.batch * q.heads);
  p.scale = static_cast<float>(scale);
  // Heads are grouped so that their keys and values fit in the cache together.
  constexpr std::int64_t kCache = std::int64_t{32} << 20;
  p.group = 1;
  while (p.group * 4 * k.sequence * (q.features + v.features) <= kCache && p.group < p.batch_heads) p.group *= 2;

  static KernelSlot slots[2][kVariants][kSizes];
  const std::size_t type = q.type == DataType::kF16 ? 1 : 0, variant = position.variant(),
                    size = static_cast<std::size_t>(hopper_size_of(q.features, v.features));
  const Function function = kernel(name_of(type, variant, size), slots[type][variant][size]);
  const int features = number(q.features), keys = key_tile_of(features),
            shared = forward_shared_bytes(position.kind, features, number(v.features));
  check(driver().cuFuncSetAttribute(function, kFunctionDynamicShared, shared), "asking for shared memory");
  const TensorMap q_map = map_of(q, kRowTile), k_map = map_of(k, keys), v_map = map_of(v, keys);
  void* parameters[] = {const_cast<TensorMap*>(&q_map), const_cast<TensorMap*>(&k_map),
                        const_cast<TensorMap*>(&v_map), &p};
  launch(function,
         {std::min<std::int64_t>(multiprocessors(), p.batch_heads * p.row_blocks), 384, static_cast<unsigned>(shared),
          position.kind == kRotation},
         site.stream, parameters);
}

}  // namespace posenc::attend::cuda
