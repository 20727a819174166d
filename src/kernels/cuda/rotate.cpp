// rotate: chooses a kernel and fills in its parameters.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "kernels/cuda/call.h"
#include "kernels/cuda/rotate.h"
#include "kernels/rotation_element.h"
#include "posenc/error.h"

namespace posenc::kernels::cuda {

Outcome rotate(const RotateJob& job);

bool has_whole_vectors(const HeadParams& x, std::int64_t first) {
  const std::int64_t size = size_of(static_cast<DataType>(x.type));
  const auto whole = [&](std::int64_t elements) { return elements * size % 16 == 0; };
  return reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && x.feature_stride == 1 && whole(first) &&
         whole(x.batch_stride) && whole(x.head_stride) && whole(x.token_stride);
}

bool narrow_strides(const HeadParams& x, std::int32_t* to) {
  const std::int64_t strides[3] = {x.batch_stride, x.head_stride, x.token_stride};
  for (int n = 0; n < 3; ++n) {
    to[n] = static_cast<std::int32_t>(strides[n]);
    if (to[n] != strides[n]) return false;
  }
  return true;
}

bool rotates_by_vectors(const RotateParams& p, const Rotation& form) {
  const bool is_in_order = form.layout == PairLayout::kHalves || form.layout == PairLayout::kInterleaved;
  return is_in_order && form.blocks == 1 && p.rates == nullptr && p.arithmetic_type == kTypeF32 &&
         p.table_type == kTypeF32;
}

namespace {

/// On the device of the tensors; or one row of doubles on the host for all tokens, which is copied and kept.
TableParams rotation_table(Call& call, const ConstTensorView& view, const Site& site) {
  if (view.data == nullptr || view.device == site.device) return call.table(view);
  const std::span<const double> row(static_cast<const double*>(view.data), static_cast<std::size_t>(view.shape[1]));
  return {call.numbers(row), kTypeF64, 0, 0, 1};
}

/// The fast rotation of whole vectors, if it applies.
bool rotate_vectors(const Call& call, const RotateJob& job, RotateParams& p) {
  const Rotation& form = *job.form;
  const DataType type = job.parts[0].x.type;
  const bool interleaved = form.layout == PairLayout::kInterleaved;
  if (type == DataType::kF64 || !rotates_by_vectors(p, form)) return false;
  const std::int64_t of_vector = 16 / size_of(type);
  const std::int64_t lanes = p.pairs / of_vector, tokens = p.batch * p.sequence;
  if (p.pairs % of_vector != 0 || lanes < 1 || lanes > 32) return false;
  const std::int64_t step = 32 / lanes, together = step * kHeadsOfALane;
  std::int64_t teams = 0;
  p.in_place = 1;
  for (int n = 0; n < job.count; ++n) {
    RotatePart& part = p.parts[n];
    const RotateJob::Part& from = job.parts[n];
    if (from.x.type != type || from.out.type != type) return false;
    if (!has_whole_vectors(part.x, part.first) || !has_whole_vectors(part.out, part.first)) return false;
    if (part.x.data != part.out.data && part.features != 2 * p.pairs) return false;
    if (!narrow_strides(part.x, part.x_strides) || !narrow_strides(part.out, part.out_strides)) return false;
    p.in_place = p.in_place != 0 && part.x.data == part.out.data ? 1 : 0;
    const std::int64_t across = (part.heads + together - 1) / together;
    part.across = divisor_of(across);
    teams += tokens * across;
  }
  if (teams > 0x7FFFFFFF || p.sequence > 0x7FFFFFFF) return false;
  p.by_sequence = divisor_of(p.sequence);
  p.lanes = static_cast<std::uint32_t>(lanes);
  p.step = static_cast<std::uint32_t>(step);
  p.lane_reciprocal = static_cast<std::uint32_t>(65536 / lanes + 1);  // exact for lane < 32
  static KernelSlot slots[4][2][6];
  const bool is_exact = p.waves.factors == nullptr && p.waves.axes == nullptr && p.late_magnitude == 1.0f;
  const bool is_few = is_exact && teams <= kFewTeams && p.pairs <= kFewPairs;
  if (p.made != nullptr) {
    if (!is_exact || job.count != 1 || p.positions.ids != nullptr) return false;
    teams += p.sequence;  // for the teams that write what is kept
  }
  const bool overlaps = is_few && p.made == nullptr && can_overlap();
  const std::size_t source = p.made != nullptr           ? 5
                             : p.cosines.data != nullptr ? 1
                             : overlaps                  ? 4
                             : is_few                    ? 3
                             : is_exact                  ? 0
                                                         : 2;
// NOLINTBEGIN(bugprone-suspicious-missing-comma): each name is put together from two
#define POSENC_SOURCES(start) \
  { start "_exact", start "_table", start "_waves", start "_few", start "_few_sm90", start "_kept_sm90" }
  constexpr std::string_view kNames[4][2][6] = {
      {POSENC_SOURCES("rotate_vectors_f32_halves"), POSENC_SOURCES("rotate_vectors_f32_interleaved")},
      {},
      {POSENC_SOURCES("rotate_vectors_f16_halves"), POSENC_SOURCES("rotate_vectors_f16_interleaved")},
      {POSENC_SOURCES("rotate_vectors_bf16_halves"), POSENC_SOURCES("rotate_vectors_bf16_interleaved")}};
#undef POSENC_SOURCES
  // NOLINTEND(bugprone-suspicious-missing-comma)
  const auto number = static_cast<std::size_t>(type), layout = static_cast<std::size_t>(interleaved ? 1 : 0);
  launch(kNames[number][layout][source], slots[number][layout][source],
         {(teams + kWarps - 1) / kWarps, 32 * kWarps, static_cast<unsigned>(kWarps * 2 * p.pairs * sizeof(float)),
          overlaps},
         call.stream(), p);
  return true;
}

void check_plain(const Rotation& form) {
  if (is_plain(form)) return;
  raise("rotate: on cuda there is no kernel for rotations that differ from head to head, summed axes or mixtures");
}

RotateParams params_of(Call& call, const RotateJob& job) {
  RotateParams p = rotation_params(call, *job.form, job.positions, job.site);
  p.count = job.count;
  p.batch = job.parts[0].x.batch;
  p.sequence = job.parts[0].x.sequence;
  for (int n = 0; n < job.count; ++n) {
    const RotateJob::Part& from = job.parts[n];
    RotatePart& part = p.parts[n];
    part.out = call.heads(from.out);
    part.x = call.heads(from.x);
    part.heads = from.x.heads, part.features = from.x.features, part.first = from.first;
    part.keys = from.keys ? 1 : 0;
    part.rotates = 1;
  }
  return p;
}

}  // namespace

RotateParams rotation_params(Call& call, const Rotation& form, const TokenPositions& positions, const Site& site) {
  check_plain(form);
  RotateParams p{};
  p.positions = call.positions(positions);
  const auto& [cosines, sines] = table_of(form);
  p.cosines = rotation_table(call, cosines, site);
  p.sines = rotation_table(call, sines, site);
  p.by_token = cosines.shape.rank == 3 ? 1 : 0;
  const auto& [axes, growth, float32_angles] = pair_waves_of(form);
  p.waves = call.waves(form.frequencies, axes, float32_angles, has_float32_angles(form) ? 1.0 : form.magnitude);
  p.sign = form.sign;
  p.late_magnitude = late_magnitude(form);
  p.rates = call.numbers(std::span<const double>(growth.rates));
  p.magnitude = form.magnitude;
  p.centre = growth.centre;
  p.pairs = pairs_of(form);
  p.in_block = p.pairs / form.blocks;
  const PairPlacement places = placement_of(form.layout, p.in_block);
  p.read_step = places.read.step, p.read_apart = places.read.apart;
  p.write_step = places.write.step, p.write_apart = places.write.apart;
  p.fault = call.fault();
  return p;
}

void set_types(RotateParams& p, const Rotation& form, DataType type) {
  const DataType arithmetic = arithmetic_type(form, type);
  p.arithmetic_type = static_cast<std::int32_t>(arithmetic);
  p.table_type =
      static_cast<std::int32_t>(table_type(form, arithmetic == DataType::kF64 ? DataType::kF64 : DataType::kF32));
}

void rotate_any(const Call& call, RotateParams& p) {
  constexpr std::int64_t kSharedBytes = 48 * 1024;
  const bool wide = p.arithmetic_type == kTypeF64;
  const std::int64_t size = wide ? 8 : 4;  // of a cosine
  p.moves = p.read_step != p.write_step || p.read_apart != p.write_apart ? 1 : 0;
  p.chunk = static_cast<std::int32_t>(std::min<std::int64_t>(p.pairs, p.moves != 0 ? p.pairs : 1024));
  std::int64_t bytes = p.chunk * 2 * size + (p.moves != 0 ? 2 * p.pairs * size : 0);
  if (bytes > kSharedBytes) {
    raise(fmt::format("rotate: on cuda, at most {} pairs may change their layout, but there are {}",
                      kSharedBytes / (4 * size), p.pairs));
  }
  std::int64_t factors = 0;
  for (int n = 0; n < p.count; ++n) {
    if (p.parts[n].norm.weight != nullptr) factors = std::max(factors, p.parts[n].heads);
  }
  bytes += factors * size;
  if (bytes > kSharedBytes) {
    raise(fmt::format("append: on cuda, a norm of {} heads does not fit into the memory of a block", factors));
  }
  launch(wide ? "rotate_any_f64" : "rotate_any_f32",
         {p.batch * p.sequence * p.count, 128, static_cast<unsigned>(bytes)}, call.stream(), p);
}

bool rotate_and_keep(Call& call, const RotateJob& job, float* made) {
  RotateParams p = params_of(call, job);
  set_types(p, *job.form, job.parts[0].x.type);
  p.made = made;
  return rotate_vectors(call, job, p);
}

Outcome rotate(const RotateJob& job) {
  check_plain(*job.form);
  const Rotation& form = *job.form;
  Call call(job.site);
  RotateParams p = params_of(call, job);
  // Queries and keys may have two types, and then two precisions: each is computed separately.
  if (job.count == 2 && arithmetic_type(form, job.parts[0].x.type) != arithmetic_type(form, job.parts[1].x.type)) {
    for (int n = 0; n < 2; ++n) {
      RotateParams one = p;
      one.count = 1;
      one.parts[0] = p.parts[n];
      set_types(one, form, job.parts[n].x.type);
      rotate_any(call, one);
    }
  } else {
    set_types(p, form, job.parts[0].x.type);
    if (!rotate_vectors(call, job, p)) rotate_any(call, p);
  }
  return call.finish();
}

}  // namespace posenc::kernels::cuda
