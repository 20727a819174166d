// Writes tokens to a cache on the GPU, and moves them within it: chooses a kernel and fills in its parameters.

#include <bit>
#include <string_view>

#include "kernels/cuda/call.h"
#include "kernels/cuda/rotate.h"
#include "kernels/rotation_element.h"

namespace posenc::kernels::cuda {

void write_slots(const SlotJob& job);

namespace {

NormParams norm_params(const Norm& norm) {
  const ConstTensorView& weight = norm.weight;
  if (weight.data == nullptr) return {};
  const bool over_heads = weight.shape.rank == 2;
  return {weight.data,
          static_cast<std::int32_t>(weight.type),
          over_heads ? 1 : 0,
          over_heads ? weight.strides[0] : 0,
          weight.strides.back(0),
          norm.epsilon,
          norm.offset};
}

RotateParams slot_params(Call& call, const SlotJob& job) {
  RotateParams p{};
  if (job.form != nullptr) p = rotation_params(call, *job.form, job.positions, job.site);
  p.fault = call.fault();
  p.count = job.count;
  p.batch = job.batch, p.sequence = job.sequence;
  p.interleaved = job.form != nullptr && job.form->layout == PairLayout::kInterleaved ? 1 : 0;
  p.arithmetic_type = p.table_type = kTypeF32;
  p.slots = call.slots(job.slots);
  for (int n = 0; n < job.count; ++n) {
    const SlotJob::Part& from = job.parts[n];
    RotatePart& part = p.parts[n];
    part.out = call.heads(from.out);
    part.x = call.heads(from.x);
    part.heads = from.x.heads, part.features = from.x.features;
    part.first = from.rotates ? from.first : 0;
    part.keys = from.keys ? 1 : 0;
    part.rotates = from.rotates ? 1 : 0;
    part.to_slots = from.to_slots ? 1 : 0, part.from_slots = from.from_slots ? 1 : 0;
    part.page_tokens = from.to_slots ? from.out.sequence : from.from_slots ? from.x.sequence : 1;
    part.norm = norm_params(from.norm);
  }
  return p;
}

// The lanes of one part, if it is whole vectors of that type. `slots`: in the cache.
bool share_lanes(RotatePart& part, DataType type, std::int64_t pairs, std::int64_t slots) {
  const auto number = static_cast<std::int32_t>(type);
  const std::int64_t of_vector = 16 / size_of(type), lanes = part.features / (2 * of_vector);
  if (part.x.type != number || part.out.type != number) return false;
  if (part.features % (2 * of_vector) != 0 || lanes < 1 || lanes > 32) return false;
  if (part.rotates != 0 && pairs % of_vector != 0) return false;
  if (!has_whole_vectors(part.x, part.first) || !has_whole_vectors(part.out, part.first)) return false;
  if (!narrow_strides(part.x, part.x_strides) || !narrow_strides(part.out, part.out_strides)) return false;
  if (slots > 0x7FFFFFFF || part.page_tokens > 0x7FFFFFFF) return false;
  const NormParams& norm = part.norm;
  if (norm.weight != nullptr) {
    const bool is_vectors = norm.type == number && norm.over_heads == 0 && norm.feature_stride == 1 &&
                            reinterpret_cast<std::uintptr_t>(norm.weight) % 16 == 0;
    if (!is_vectors || !std::has_single_bit(static_cast<std::uint64_t>(lanes))) return false;
  }
  part.lanes = static_cast<std::uint32_t>(lanes);
  part.rotating_lanes = static_cast<std::uint32_t>(part.rotates != 0 ? pairs / of_vector : 0);
  part.step = static_cast<std::uint32_t>(32 / lanes);
  part.lane_reciprocal = static_cast<std::uint32_t>(65536 / lanes + 1);  // exact for lane < 32
  part.by_page = divisor_of(part.page_tokens);
  const std::int64_t together = (32 / lanes) * kHeadsOfALane;
  part.across = divisor_of((part.heads + together - 1) / together);
  return true;
}

// The fast kernel for whole vectors, if it applies.
bool append_vectors(const Call& call, const Rotation* form, RotateParams& p) {
  const auto type = static_cast<DataType>(p.parts[0].x.type);
  const std::int64_t tokens = p.batch * p.sequence;
  if (type == DataType::kF64 || (form != nullptr && !rotates_by_vectors(p, *form))) return false;
  std::int64_t teams = 0;
  bool has_norm = false;
  for (int n = 0; n < p.count; ++n) {
    has_norm = has_norm || p.parts[n].norm.weight != nullptr;
    if (!share_lanes(p.parts[n], type, p.pairs, p.slots.limit)) return false;
    teams += tokens * p.parts[n].across.divisor;
  }
  if (teams > 0x7FFFFFFF) return false;
  p.by_sequence = divisor_of(p.sequence);
  const bool is_exact = form == nullptr || (p.waves.factors == nullptr && p.waves.axes == nullptr &&
                                            p.late_magnitude == 1.0f && p.cosines.data == nullptr);
  const bool is_few = is_exact && teams <= kFewTeams && p.pairs <= kFewPairs;
  const bool overlaps = is_few && can_overlap();
  const std::size_t source = overlaps ? 4 : is_few ? 3 : !is_exact ? 2 : has_norm ? 1 : 0;
// NOLINTBEGIN(bugprone-suspicious-missing-comma): each name is put together from two
#define POSENC_SOURCES(start) \
  { start "_exact", start "_exact_norm", start "_other", start "_few", start "_few_sm90" }
  constexpr std::string_view kNames[4][5] = {POSENC_SOURCES("append_vectors_f32"),
                                             {},
                                             POSENC_SOURCES("append_vectors_f16"),
                                             POSENC_SOURCES("append_vectors_bf16")};
#undef POSENC_SOURCES
  // NOLINTEND(bugprone-suspicious-missing-comma)
  static KernelSlot slots[4][5];
  const auto number = static_cast<std::size_t>(type);
  launch(kNames[number][source], slots[number][source],
         {(teams + kWarps - 1) / kWarps, 32 * kWarps, static_cast<unsigned>(kWarps * 2 * p.pairs * sizeof(float)),
          overlaps},
         call.stream(), p);
  return true;
}

// Parts of two arithmetic types are computed separately.
void write_any(const Call& call, const Rotation* form, const RotateParams& p) {
  const auto type_of = [&](const RotatePart& part) {
    const auto type = static_cast<DataType>(part.x.type);
    return form != nullptr ? arithmetic_type(*form, type) : type == DataType::kF64 ? type : DataType::kF32;
  };
  bool is_done[3] = {};
  for (int n = 0; n < p.count; ++n) {
    if (is_done[n]) continue;
    RotateParams some = p;
    some.count = 0;
    for (int other = n; other < p.count; ++other) {
      if (is_done[other] || type_of(p.parts[other]) != type_of(p.parts[n])) continue;
      some.parts[some.count++] = p.parts[other];
      is_done[other] = true;
    }
    some.arithmetic_type = static_cast<std::int32_t>(type_of(p.parts[n]));
    if (form != nullptr) set_types(some, *form, static_cast<DataType>(p.parts[n].x.type));
    rotate_any(call, some);
  }
}

void write(const Call& call, const Rotation* form, RotateParams& p) {
  if (form != nullptr) set_types(p, *form, static_cast<DataType>(p.parts[0].x.type));
  if (!append_vectors(call, form, p)) write_any(call, form, p);
}

// The slots of `sources` to dense memory, [tokens, heads, features], then from there to `slots`.
void move_slots(Call& call, const SlotJob& job) {
  SlotJob way = job;
  SlotJob::Part& part = way.parts[0];
  const std::int64_t row = part.x.heads * part.x.features;
  HeadTensor<void> between;
  between.data = call.borrow(job.sequence * row * size_of(part.x.type));
  between.type = part.x.type;
  between.heads = part.x.heads, between.sequence = job.sequence, between.features = part.x.features;
  between.head_stride = part.x.features, between.token_stride = row, between.batch_stride = job.sequence * row;
  const SlotParams to = call.slots(job.slots), from = call.slots(job.sources);

  part.out = between, part.to_slots = false;
  way.slots = way.sources = {};
  RotateParams p = slot_params(call, way);
  p.slots = from, p.others = to;
  write(call, nullptr, p);

  part.out = job.parts[0].out, part.to_slots = true, part.from_slots = false;
  part.x = {between.data,         between.type,        1,
            between.heads,        between.sequence,    between.features,
            between.batch_stride, between.head_stride, between.token_stride};
  p = slot_params(call, way);
  p.slots = to, p.others = from;
  write(call, nullptr, p);
}

}  // namespace

void write_slots(const SlotJob& job) {
  Call call(job.site);
  if (job.sources.is_given()) {
    move_slots(call, job);
    return;
  }
  RotateParams p = slot_params(call, job);
  write(call, job.form, p);
}

}  // namespace posenc::kernels::cuda
