// Keys and values on their way into a cache, and keys that move in it.

#include "posenc/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/checks.h"
#include "kernels/element.h"
#include "kernels/memory.h"
#include "kernels/rotation_element.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using namespace kernels;

// Tokens of one sequence whose slots follow each other in one page.
struct SlotRun {
  std::int64_t b, token, page, offset, count;
};

void check_host(std::string_view verb, std::initializer_list<ConstTensorView> views) {
  for (const ConstTensorView& view : views) {
    if (view.device != Device::kHost) raise(fmt::format("{}: tensors must be on the host", verb));
  }
}

AlignedVector<SlotRun> runs_of(std::string_view verb, const HeadTensor<void>& cache, const HeadTensor<const void>& x,
                               std::span<const std::int64_t> slots) {
  if (cache.heads != x.heads || cache.features != x.features) {
    raise(fmt::format("{}: the cache has {} heads of {} features but the tensor {} of {}", verb, cache.heads,
                      cache.features, x.heads, x.features));
  }
  if (std::ssize(slots) != x.batch * x.sequence) {
    raise(fmt::format("{}: {} slots for {} sequences of {} tokens", verb, slots.size(), x.batch, x.sequence));
  }
  const std::int64_t size = cache.sequence, all = cache.batch * size;
  AlignedVector<std::int64_t> used;
  AlignedVector<SlotRun> runs;
  used.reserve(slots.size());
  runs.reserve(slots.size());
  for (std::int64_t i = 0; i < std::ssize(slots); ++i) {
    const std::int64_t slot = slots[static_cast<std::size_t>(i)], b = i / x.sequence, token = i % x.sequence;
    if (slot < 0) continue;
    if (slot >= all) raise(fmt::format("{}: slot {} is past the cache, which has {}", verb, slot, all));
    used.push_back(slot);
    if (!runs.empty()) {
      SlotRun& last = runs.back();
      const bool goes_on = last.b == b && last.token + last.count == token && last.page == slot / size &&
                           last.offset + last.count == slot % size;
      if (goes_on) {
        ++last.count;
        continue;
      }
    }
    runs.push_back({b, token, slot / size, slot % size, 1});
  }
  std::sort(used.begin(), used.end());
  const auto twice = std::adjacent_find(used.begin(), used.end());
  if (twice != used.end()) raise(fmt::format("{}: slot {} is given to two tokens", verb, *twice));
  return runs;
}

HeadTensor<void> cache_of(std::string_view verb, const TensorView& cache) {
  check_tensor(verb, "the cache", cache, 4, 4, "4 axes, pages, heads, page size, features");
  check_writable(verb, "the cache", cache);
  return heads_of(verb, "the cache", cache);
}

// The tokens of a run as a view of their own: [heads, tokens, features].
template <class Void>
BasicTensorView<Void> part_of(const HeadTensor<Void>& x, std::int64_t b, std::int64_t token, std::int64_t count) {
  Void* const start =
      with_type(x.type, [&](auto kind) -> Void* { return x.template row<decltype(kind)>(b, 0, token); });
  return {start, x.type, {x.heads, count, x.features}, {x.head_stride, x.token_stride, x.feature_stride}};
}

}  // namespace

void rotate_into(TensorView cache, std::span<const std::int64_t> slots, ConstTensorView k, const Positions& positions,
                 const Rotation& form) {
  constexpr std::string_view verb = "rotate_into";
  check_host(verb, {cache, k});
  const HeadTensor<void> to = cache_of(verb, cache);
  const HeadTensor<const void> from = heads_of(verb, "k", k);
  if (from.batch * from.heads * from.sequence == 0) return;
  if (may_overlap(cache, k)) raise("rotate_into: the cache overlaps k");
  if (has_table(form) && form.table.cosines.shape.rank == 3) {
    raise("rotate_into: a table with a row for each token is not taken; rotate, then copy_into");
  }
  // most forms rotate keys as queries: then nothing is copied
  const Rotation grown = form.growth.rates.empty() ? Rotation{} : for_keys(form);
  const Rotation& turned = form.growth.rates.empty() ? form : grown;
  const TokenPositions tokens = rotary_positions_of(verb, positions, turned, {from.batch, from.sequence});
  const Backend& backend = backend_for(verb, Device::kHost);
  for (const SlotRun& run : runs_of(verb, to, from, slots)) {
    TokenPositions own = tokens;
    const std::int64_t offset = run.b * own.batch_stride + run.token;
    if (own.ids != nullptr) own.ids += offset;
    if (own.narrow_ids != nullptr) own.narrow_ids += offset;
    if (own.has_ids()) own.count -= offset;  // of all axes, from there on
    if (!own.has_ids()) own.first += run.token;
    own.batch_stride = 0;
    rotate_for(verb, backend, part_of(to, run.page, run.offset, run.count),
               part_of(from, run.b, run.token, run.count), own, turned);
  }
}

void copy_into(TensorView cache, std::span<const std::int64_t> slots, ConstTensorView x) {
  constexpr std::string_view verb = "copy_into";
  check_host(verb, {cache, x});
  const HeadTensor<void> to = cache_of(verb, cache);
  const HeadTensor<const void> from = heads_of(verb, "x", x);
  if (from.batch * from.heads * from.sequence == 0) return;
  if (may_overlap(cache, x)) raise("copy_into: the cache overlaps x");
  for (const SlotRun& run : runs_of(verb, to, from, slots)) {
    with_type(to.type, [&](auto to_kind) {
      with_type(from.type, [&](auto from_kind) {
        using To = decltype(to_kind);
        using From = decltype(from_kind);
        for (std::int64_t row = 0; row < from.heads * run.count; ++row) {
          const std::int64_t h = row / run.count, n = row % run.count;
          const From* const source = from.row<From>(run.b, h, run.token + n);
          To* const target = to.row<To>(run.page, h, run.offset + n);
          for (std::int64_t f = 0; f < from.features; ++f) {
            if constexpr (std::is_same_v<To, From>) {
              target[f * to.feature_stride] = source[f * from.feature_stride];
            } else {
              target[f * to.feature_stride] = numerics::narrow<To>(numerics::widen(source[f * from.feature_stride]));
            }
          }
        }
      });
    });
  }
}

void shift(TensorView x, std::int64_t by, const Rotation& form, const Run& run) {
  constexpr std::string_view verb = "shift";
  const CallThreads threads_of_call(verb, run);
  if (has_table(form)) raise("shift: a table has no rotation by a constant");
  if (!is_plain(form))
    raise("shift: heads that are rotated each in its own way, summed axes and mixtures are not taken");
  if (!form.float32_angles.factors.empty()) {
    raise("shift: float32 angles do not grow by a constant from one position to the next; rerotate keys instead");
  }
  if (by <= -kPositionLimit || by >= kPositionLimit) {
    raise(fmt::format("shift: by must be between -2^53 and 2^53 but is {}", by));
  }
  // What was written: one position for all axes, the magnitude is in the keys already, growth from p to p + by.
  Rotation step = for_keys(form);
  step.magnitude = 1.0;
  step.axes.clear();
  step.position_axes = 1;
  step.growth.centre = 0;
  if (by < 0) {
    step.sign = -step.sign;
    for (double& rate : step.growth.rates) rate = -rate;
  }
  const std::int64_t pairs = pairs_of(step);
  std::vector<double> cosines(static_cast<std::size_t>(pairs)), sines = cosines;
  tabulate(view(cosines.data(), {1, pairs}), view(sines.data(), {1, pairs}), {.first = by < 0 ? -by : by}, step);
  // In the type of the arithmetic, which is then not made of it again for every token. A GPU takes doubles, and rounds them so.
  const auto is_f32 = [](std::optional<DataType> type) { return type.value_or(DataType::kF32) == DataType::kF32; };
  const bool is_narrow = x.device == Device::kHost && x.type != DataType::kF64 && is_f32(form.precision.table) &&
                         is_f32(form.precision.arithmetic);
  std::vector<float> narrow;
  if (is_narrow) {
    for (const auto* const row : {&cosines, &sines}) {
      for (const double value : *row) narrow.push_back(static_cast<float>(value));
    }
  }
  Rotation constant;
  const bool to_halves = form.layout == PairLayout::kHalves || form.layout == PairLayout::kInterleavedToHalves;
  constant.layout = to_halves ? PairLayout::kHalves : PairLayout::kInterleaved;
  constant.blocks = form.blocks;
  constant.first_dim = form.first_dim;
  constant.precision = form.precision;
  // one row for every token
  const std::int64_t tokens = std::max<std::int64_t>(heads_of(verb, "x", x).sequence, 1);
  const auto rows_of = [&](const std::vector<double>& wide, std::int64_t offset) {
    if (is_narrow) return ConstTensorView(narrow.data() + offset, DataType::kF32, {tokens, pairs}, {0, 1});
    return ConstTensorView(wide.data(), DataType::kF64, {tokens, pairs}, {0, 1});
  };
  constant.table = {rows_of(cosines, 0), rows_of(sines, pairs)};
  const Site site = site_of(verb, {x}, {}, run);
  rotate_for(verb, backend_for(verb, site.device), x, x, {}, constant, site);
}

}  // namespace posenc
