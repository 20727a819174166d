// Writes keys and values to a cache, and moves keys within it.

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
#if POSENC_CPU_BACKEND
#include "kernels/cpu/parallel.h"
#endif

namespace posenc {
namespace {

using namespace kernels;

// Tokens of one sequence whose slots are consecutive in one page.
struct SlotRun {
  std::int64_t b, token, page, offset, count;
};

void check_host(std::string_view verb, std::initializer_list<ConstTensorView> views) {
  for (const ConstTensorView& view : views) {
    if (view.device != Device::kHost) raise(fmt::format("{}: tensors must be on the host", verb));
  }
}

// Checks that each slot is in the cache and none is given twice. Negative slots are skipped.
void check_slots(std::string_view verb, const HeadTensor<void>& cache, std::span<const std::int64_t> slots,
                 bool may_repeat = false) {
  const std::int64_t all = cache.batch * cache.sequence;
  AlignedVector<std::int64_t> used;
  used.reserve(slots.size());
  for (const std::int64_t slot : slots) {
    if (slot < 0) continue;
    if (slot >= all)
      raise(fmt::format("{}: slot {} is past the end of the cache, which has {} slots", verb, slot, all));
    used.push_back(slot);
  }
  if (may_repeat) return;
  std::sort(used.begin(), used.end());
  const auto twice = std::adjacent_find(used.begin(), used.end());
  if (twice != used.end()) raise(fmt::format("{}: slot {} occurs twice", verb, *twice));
}

AlignedVector<SlotRun> runs_of(std::string_view verb, const HeadTensor<void>& cache, std::int64_t sequence,
                               std::span<const std::int64_t> slots) {
  check_slots(verb, cache, slots);
  const std::int64_t size = cache.sequence;
  AlignedVector<SlotRun> runs;
  runs.reserve(slots.size());
  for (std::int64_t i = 0; i < std::ssize(slots); ++i) {
    const std::int64_t slot = slots[static_cast<std::size_t>(i)], b = i / sequence, token = i % sequence;
    if (slot < 0) continue;
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
  return runs;
}

void check_fits(std::string_view verb, const HeadTensor<void>& cache, const HeadTensor<const void>& x,
                std::span<const std::int64_t> slots) {
  if (cache.heads != x.heads || cache.features != x.features) {
    raise(fmt::format("{}: the cache has {} heads of {} features but the tensor has {} of {}", verb, cache.heads,
                      cache.features, x.heads, x.features));
  }
  if (std::ssize(slots) != x.batch * x.sequence) {
    raise(fmt::format("{}: got {} slots for {} sequences of {} tokens; each token needs one", verb, slots.size(),
                      x.batch, x.sequence));
  }
}

// Calls body(i) for every row, on the threads of the call.
template <class Body> void each_row(std::int64_t rows, [[maybe_unused]] std::int64_t bytes, const Body& body) {
  const auto some = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  };
#if POSENC_CPU_BACKEND
  constexpr std::int64_t kBytes = 1 << 16;  // fewer are not worth a thread
  if (selected_backend().name == "cpu") {
    cpu::parallel_for(rows, std::max<std::int64_t>(kBytes / std::max<std::int64_t>(bytes, 1), 1), some);
    return;
  }
#endif
  some(0, rows);
}

template <class To, class From> struct RowCopy {
  std::int64_t features, to_stride, from_stride;
  void operator()(To* to, const From* from) const noexcept {
    if constexpr (std::is_same_v<To, From>) {
      if (to_stride == 1 && from_stride == 1) {
        std::copy_n(from, features, to);
        return;
      }
      for (std::int64_t f = 0; f < features; ++f) to[f * to_stride] = from[f * from_stride];
    } else {
      for (std::int64_t f = 0; f < features; ++f) {
        to[f * to_stride] = numerics::narrow<To>(numerics::widen(from[f * from_stride]));
      }
    }
  }
};

HeadTensor<void> cache_of(std::string_view verb, const TensorView& cache) {
  check_tensor(verb, "the cache", cache, 4, 4, "4 axes, pages, heads, page size, features");
  check_writable(verb, "the cache", cache);
  return heads_of(verb, "the cache", cache);
}

// The tokens of a run as a separate view: [heads, tokens, features].
template <class Void>
BasicTensorView<Void> part_of(const HeadTensor<Void>& x, std::int64_t b, std::int64_t token, std::int64_t count) {
  Void* const start =
      with_type(x.type, [&](auto kind) -> Void* { return x.template row<decltype(kind)>(b, 0, token); });
  return {start, x.type, {x.heads, count, x.features}, {x.head_stride, x.token_stride, x.feature_stride}};
}

}  // namespace

void rotate_into(TensorView cache, std::span<const std::int64_t> slots, ConstTensorView k, const Positions& positions,
                 const Rotation& form, const Run& run) {
  constexpr std::string_view verb = "rotate_into";
  const CallThreads threads_of_call(verb, run);
  check_host(verb, {cache, k});
  const HeadTensor<void> to = cache_of(verb, cache);
  const HeadTensor<const void> from = heads_of(verb, "k", k);
  if (from.batch * from.heads * from.sequence == 0) return;
  if (do_overlap(cache, k)) raise("rotate_into: the cache overlaps k");
  if (has_table(form) && form.table.cosines.shape.rank == 3) {
    raise("rotate_into: a table with one row per token is not supported; use rotate, then copy_into");
  }
  // most forms rotate keys as they rotate queries: then nothing is copied
  const Rotation grown = form.growth.rates.empty() ? Rotation{} : for_keys(form);
  const Rotation& turned = form.growth.rates.empty() ? form : grown;
  const TokenPositions tokens = rotary_positions_of(verb, positions, turned, {from.batch, from.sequence});
  const Backend& backend = backend_for(verb, Device::kHost);
  check_fits(verb, to, from, slots);
  for (const SlotRun& part : runs_of(verb, to, from.sequence, slots)) {
    TokenPositions own = tokens;
    const std::int64_t offset = part.b * own.batch_stride + part.token;
    if (own.ids != nullptr) own.ids += offset;
    if (own.narrow_ids != nullptr) own.narrow_ids += offset;
    if (own.has_ids()) own.count -= offset;  // for all axes, from there on
    if (!own.has_ids()) own.first += part.token;
    own.batch_stride = 0;
    rotate_for(verb, backend, part_of(to, part.page, part.offset, part.count),
               part_of(from, part.b, part.token, part.count), own, turned);
  }
}

void copy_into(TensorView cache, std::span<const std::int64_t> slots, ConstTensorView x, const Run& run) {
  constexpr std::string_view verb = "copy_into";
  const CallThreads threads_of_call(verb, run);
  check_host(verb, {cache, x});
  const HeadTensor<void> to = cache_of(verb, cache);
  const HeadTensor<const void> from = heads_of(verb, "x", x);
  if (from.batch * from.heads * from.sequence == 0) return;
  if (do_overlap(cache, x)) raise("copy_into: the cache overlaps x; copy_slots copies within a cache");
  check_fits(verb, to, from, slots);
  check_slots(verb, to, slots);
  with_type(to.type, [&](auto to_kind) {
    with_type(from.type, [&](auto from_kind) {
      using To = decltype(to_kind);
      using From = decltype(from_kind);
      const RowCopy<To, From> copy{from.features, to.feature_stride, from.feature_stride};
      each_row(std::ssize(slots) * from.heads, from.features * size_of(to.type), [&](std::int64_t row) {
        const std::int64_t i = row / from.heads, h = row % from.heads;
        const std::int64_t slot = slots[static_cast<std::size_t>(i)];
        if (slot < 0) return;
        copy(to.row<To>(slot / to.sequence, h, slot % to.sequence),
             from.row<From>(i / from.sequence, h, i % from.sequence));
      });
    });
  });
}

void copy_slots(TensorView cache, std::span<const std::int64_t> to, std::span<const std::int64_t> from,
                const Run& run) {
  constexpr std::string_view verb = "copy_slots";
  const CallThreads threads_of_call(verb, run);
  check_host(verb, {cache});
  const HeadTensor<void> pool = cache_of(verb, cache);
  if (to.size() != from.size())
    raise(fmt::format("copy_slots: `to` has {} slots but `from` has {}", to.size(), from.size()));
  check_slots(verb, pool, from, true);
  std::vector<std::int64_t> written(to.begin(), to.end());  // and those that have a source
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (from[i] < 0) written[i] = -1;
  }
  check_slots(verb, pool, to, true);
  check_slots(verb, pool, written);
  with_type(pool.type, [&](auto kind) {
    using T = decltype(kind);
    std::vector<T> read(written.size() * static_cast<std::size_t>(pool.features));  // for one head
    const std::int64_t bytes = pool.features * size_of(pool.type);
    const RowCopy<T, T> in{pool.features, 1, pool.feature_stride}, out{pool.features, pool.feature_stride, 1};
    for (std::int64_t h = 0; h < pool.heads; ++h) {
      const auto row_of = [&](std::int64_t slot) {
        return pool.row<T>(slot / pool.sequence, h, slot % pool.sequence);
      };
      each_row(std::ssize(written), bytes, [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        if (written[at] >= 0) in(read.data() + i * pool.features, row_of(from[at]));
      });
      each_row(std::ssize(written), bytes, [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        if (written[at] >= 0) out(row_of(written[at]), read.data() + i * pool.features);
      });
    }
  });
}

std::vector<std::int64_t> slots_of(std::span<const std::int32_t> pages, std::int64_t page_size, std::int64_t first,
                                   std::int64_t count) {
  if (page_size < 1) raise(fmt::format("slots_of: page_size must be 1 or more but is {}", page_size));
  if (first < 0 || count < 0) {
    raise(fmt::format("slots_of: first and count must be 0 or more but are {} and {}", first, count));
  }
  const std::int64_t room =
      std::ssize(pages) <= kPositionLimit / page_size ? std::ssize(pages) * page_size : kPositionLimit;
  if (first > room || count > room - first) {
    raise(fmt::format("slots_of: {} tokens from token {} on do not fit into {} pages of {} tokens", count, first,
                      pages.size(), page_size));
  }
  std::vector<std::int64_t> slots(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t page = pages[static_cast<std::size_t>((first + i) / page_size)];
    if (page < 0) raise(fmt::format("slots_of: token {} is in page {}; pages must be 0 or more", first + i, page));
    slots[static_cast<std::size_t>(i)] = page * page_size + (first + i) % page_size;
  }
  return slots;
}

namespace {

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
  if (!form.float32_angles.factors.empty()) {
    raise("shift: float32 angles do not shift by a constant; use rerotate");
  }
  if (by <= -kPositionLimit || by >= kPositionLimit) {
    raise(fmt::format("shift: by must be between -2^53 and 2^53 but is {}", by));
  }
  // The keys were written with one position for all axes and already include the magnitude; growth goes from p to p +
  // by.
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
  made.cosines.resize(static_cast<std::size_t>(pairs));
  made.sines.resize(static_cast<std::size_t>(pairs));
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
  constant.table = {rows_of(made.cosines, 0), rows_of(made.sines, pairs)};
}

}  // namespace

void shift(TensorView x, std::int64_t by, const Rotation& form, const Run& run) {
  constexpr std::string_view verb = "shift";
  const CallThreads threads_of_call(verb, run);
  ConstantRotation constant;
  set_constant(constant, x, std::max<std::int64_t>(heads_of(verb, "x", x).sequence, 1), by, form);
  const Site site = site_of(verb, {x}, {}, run);
  rotate_for(verb, backend_for(verb, site.device), x, x, {}, constant.form, site);
}

void shift(TensorView cache, std::span<const std::int64_t> slots, std::int64_t by, const Rotation& form,
           const Run& run) {
  constexpr std::string_view verb = "shift";
  const CallThreads threads_of_call(verb, run);
  check_host(verb, {cache});
  const HeadTensor<void> pool = cache_of(verb, cache);
  ConstantRotation constant;
  set_constant(constant, cache, std::max<std::int64_t>(pool.sequence, 1), by, form);
  const Backend& backend = backend_for(verb, Device::kHost);
  for (const SlotRun& part : runs_of(verb, pool, std::max<std::int64_t>(std::ssize(slots), 1), slots)) {
    const TensorView keys = part_of(pool, part.page, part.offset, part.count);
    rotate_for(verb, backend, keys, keys, {}, constant.form);
  }
}

}  // namespace posenc
