// Moves rotated keys to other positions.

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/slots.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using namespace kernels;

// Each shift rounds keys to their type once, and what it turns a slow pair by is below half an ulp of 16 bits: that pair
// stays where it is, however often it is shifted. The errors of n shifts are up to n half ulps. A context of 4096 tokens
// that drops 64 at a time shifts each key 64 times before it drops it; by 1 at a time, a key of bf16 is off by 0.45 of its
// size after 1024.
constexpr std::int64_t kLeastNarrowShift = 64;

// Types::kOfNumbers would refuse them too, but not say what to do.
void refuse_8_bits(const TensorView& x) {
  if (!is_of_8_bits(x.type)) return;
  raise(fmt::format(
      "shift: keys of {0} would be rounded to 8 bits again by each shift; keep keys that are to be shifted in f32, f16 or bf16, "
      "or write them to {0} again, rotated for their new positions",
      name_of(x.type)));
}

// A rotation by a constant, with the numbers it refers to.
struct ConstantRotation {
  Rotation form;
  std::vector<double> cosines, sines;
  std::vector<float> narrow;
};

// Turns what `form` wrote for position p into what it writes for p + by, for tensors like x with up to the given
// number of tokens.
void set_constant(ConstantRotation& made, const TensorView& x, std::int64_t tokens, std::int64_t by,
                  const Rotation& form) {
  if (has_table(form)) raise("shift: a rotation by a table cannot be shifted by a constant");
  if (!is_plain(form))
    raise("shift: rotations that differ from head to head, summed axes and mixtures are not supported");
  if (has_float32_angles(form)) {
    raise("shift: float32 angles do not shift by a constant; use rerotate");
  }
  if (by <= -kPositionLimit || by >= kPositionLimit) {
    raise(fmt::format("shift: by must be between -2^53 and 2^53 but is {}", by));
  }
  const std::int64_t size = by < 0 ? -by : by;
  if (size_of(x.type) == 2 && size != 0 && size < kLeastNarrowShift) {
    raise(fmt::format(
        "shift: {} keys decay if shifted by {} again and again; shift by at least {} at once, keep keys in "
        "f32, or shift none and let the positions of new tokens go on",
        name_of(x.type), by, kLeastNarrowShift));
  }
  // The keys were written with one position for all axes and already include the magnitude; growth goes from p to p +
  // by.
  Rotation step = by < 0 ? form : for_keys(form);
  step.magnitude = 1.0;
  step.position_axes = 1;
  auto& waves = std::get<PairWaves>(step.source);
  waves.axes.clear();
  waves.growth.centre = 0;
  if (by < 0) step.sign = -step.sign;
  const std::int64_t pairs = pairs_of(step);
  made.cosines.resize(pairs);
  made.sines.resize(pairs);
  tabulate(view(made.cosines.data(), {1, pairs}), view(made.sines.data(), {1, pairs}), {.first = by < 0 ? -by : by},
           step);
  // In the type of the arithmetic, so that it need not be converted again for every token. A GPU takes doubles and
  // rounds them the same way.
  const auto is_f32 = [](std::optional<DataType> type) { return type.value_or(DataType::kF32) == DataType::kF32; };
  const bool is_narrow = x.device == Device::kHost && x.type != DataType::kF64 && is_f32(form.precision.table) &&
                         is_f32(form.precision.arithmetic);
  if (is_narrow) {
    for (const auto* const row : {&made.cosines, &made.sines}) {
      for (const double value : *row) made.narrow.push_back(static_cast<float>(value));
    }
  }
  Rotation& constant = made.form;
  const bool to_halves = form.layout == PairLayout::kHalves || form.layout == PairLayout::kInterleavedToHalves;
  constant.layout = to_halves ? PairLayout::kHalves : PairLayout::kInterleaved;
  constant.blocks = form.blocks;
  constant.first_dim = form.first_dim;
  constant.precision = form.precision;
  const auto rows_of = [&](const std::vector<double>& wide, std::int64_t offset) {  // one row for all tokens
    if (is_narrow) return ConstTensorView(made.narrow.data() + offset, DataType::kF32, {tokens, pairs}, {0, 1});
    return ConstTensorView(wide.data(), DataType::kF64, {tokens, pairs}, {0, 1});
  };
  constant.source = RotationTable{rows_of(made.cosines, 0), rows_of(made.sines, pairs)};
}

}  // namespace

void shift(TensorView x, std::int64_t by, const Rotation& form, const Run& run) {
  constexpr std::string_view verb = "shift";
  const CallThreads threads_of_call(verb, run);
  refuse_8_bits(x);
  ConstantRotation constant;
  set_constant(constant, x, std::max<std::int64_t>(heads_of(verb, "x", x).sequence, 1), by, form);
  const Site site = site_of(verb, {x}, {}, run);
  rotate_for(verb, backend_for(verb, site.device), x, x, {}, constant.form, site);
}

void shift(TensorView cache, const Slots& slots, std::int64_t by, const Rotation& form, const Run& run) {
  constexpr std::string_view verb = "shift";
  const CallThreads threads_of_call(verb, run);
  refuse_8_bits(cache);
  const Site site = site_of(verb, {cache}, {}, run);
  const HeadTensor<void> pool = cache_of(verb, "the cache", cache, Types::kOfNumbers);
  ConstantRotation constant;
  set_constant(constant, cache, std::max<std::int64_t>(pool.sequence, 1), by, form);
  const CallSlots places(verb, slots, slots_in(pool), site.device);
  check_apart(verb, places);
  if (slot_count(slots) == 0 || slots_in(pool) == 0) return;
  if (site.device == Device::kHost) {
    const Backend& backend = backend_for(verb, Device::kHost);
    for (const SlotRun& part : runs_of(pool, slot_count(slots), places.values())) {
      const TensorView keys = tokens_in(pool, part.page, part.offset, part.count);
      rotate_for(verb, backend, keys, keys, {}, constant.form);
    }
    return;
  }
  SlotJob job;
  SlotJob::Part& part = job.parts[0];
  part.out = pool, part.x = read_only(pool);
  part.to_slots = part.from_slots = part.rotates = true;
  part.first = first_rotated(verb, "x", constant.form, part.x);
  job.sequence = slot_count(slots);
  job.slots = places.list();
  job.form = &constant.form;
  job.site = site;
  backend_for(verb, site.device).write_slots(job);
}

}  // namespace posenc
