#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

#include "benchmarks/bench.h"
#include "cli/system/signals.h"
#include "posenc/apply.h"
#include "posenc/backend.h"
#include "posenc/cache.h"
#include "posenc/scheme.h"

namespace posenc::bench {
namespace {

using cli::stop_if_signalled;

constexpr std::int64_t kHeads = 32, kFeatures = 128;
constexpr Extents kPrefill = {1, 4096, kHeads, kFeatures};
constexpr Extents kDecode = {64, 1, kHeads, kFeatures};
constexpr Extents kChunk = {1, 32, kHeads, kFeatures};  // 512 KiB of 16-bit queries and keys
constexpr std::int64_t kTableRows = 32768;
constexpr int kSteps = 32;  // in a cache; a single one is too short to time

double duration_of(const std::function<void()>& job) {
  const auto begin = std::chrono::steady_clock::now();
  job();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// One position for each sequence, no two close to each other.
std::vector<std::int64_t> irregular_positions() {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < kDecode[0]; ++i) ids.push_back((i + 1) * 40503 % kTableRows);
  return ids;
}

// Cosines and sines of a rotation in f32, as engines store them.
class ReadyTable {
 public:
  explicit ReadyTable(const Rotation& made)
      : memory_(static_cast<std::size_t>(2 * kTableRows * pairs_of(made)) * sizeof(float)), form_() {
    const Extents shape = {kTableRows, pairs_of(made)};
    auto* const cosines = memory_.as<float>();
    auto* const sines = cosines + count_of(shape);
    tabulate(view(cosines, shape), view(sines, shape), {}, made);
    form_.layout = made.layout;
    form_.source = RotationTable{view(cosines, shape), view(sines, shape)};
  }
  const Rotation& form() const { return form_; }

 private:
  limits::Memory memory_;
  Rotation form_;
};

// Queries and keys in one piece of memory, [batch, sequence, heads, features].
class Pair {
 public:
  Pair(const Extents& shape, DataType type)
      : shape_(shape), type_(type), memory_(static_cast<std::size_t>(2 * count_of(shape) * size_of(type))) {}

  QueryKey<TensorView> views() const {
    std::byte* const q = memory_.bytes().data();
    std::byte* const k = q + memory_.bytes().size() / 2;
    return {swap_axes(TensorView(q, type_, shape_), 1, 2), swap_axes(TensorView(k, type_, shape_), 1, 2)};
  }
  std::vector<limits::Loop> limits() const { return limits::in_place_loops(memory_.bytes(), threads()); }
  double bytes() const { return 2.0 * static_cast<double>(memory_.bytes().size()); }

 private:
  Extents shape_;
  DataType type_;
  limits::Memory memory_;
};

BenchResult measure_prefill(const std::string& job, DataType type, const Rotation& form, const limits::Effort& effort,
                            const Extents& shape = kPrefill) {
  const Pair x(shape, type);
  BenchResult result{job, shape, type, threads(), "in-place", x.bytes(), {}};
  const auto run = [&] {
    stop_if_signalled();
    rotate(x.views(), {}, form);
  };
  result.times = limits::compare(x.limits(), run, effort);
  return result;
}

// Cached keys that move to other positions, compared with rotating them by a precomputed table.
BenchResult measure_shift(const Rotation& form, const Rotation& ready, const limits::Effort& effort) {
  const Pair x(kPrefill, DataType::kF32);
  BenchResult result{"shift of cached keys", kPrefill, DataType::kF32, threads(), "in-place", x.bytes(), {}};
  const auto run = [&] {
    stop_if_signalled();
    shift(x.views().q, 1, form);
    shift(x.views().k, 1, form);
  };
  result.times = limits::compare(x.limits(), run, effort);
  const auto rotation = [&] { return duration_of([&] { rotate(x.views(), {}, ready); }); };
  result.of_ready = limits::compare({{"ready", rotation}}, run, effort).ratio;
  return result;
}

// New keys that are written to a cache of pages with tokens before heads, in order: rotated, or as they are. Compared with
// rotating the same keys out of place.
BenchResult measure_into(const std::string& job, DataType from, DataType type, const Rotation* form,
                         const limits::Effort& effort) {
  constexpr std::int64_t kTokens = 4096, kCachedHeads = 8, kPage = 16;
  constexpr Extents kKeys = {1, kTokens, kCachedHeads, kFeatures};
  const std::int64_t count = count_of(kKeys);
  const limits::Memory memory(static_cast<std::size_t>(2 * count) * sizeof(float));
  float* const given = memory.as<float>();
  std::fill(given, given + count, 0.5f);
  const Rotation rope = prepare(Rope{.dims = kFeatures});
  std::vector<std::int64_t> slots(static_cast<std::size_t>(kTokens));
  std::iota(slots.begin(), slots.end(), 0);
  const ConstTensorView k = swap_axes(ConstTensorView(given, from, kKeys), 1, 2);
  const TensorView cache =
      swap_axes(TensorView(given + count, type, {kTokens / kPage, kPage, kCachedHeads, kFeatures}), 1, 2);
  const TensorView out = swap_axes(TensorView(given + count, from, kKeys), 1, 2);
  const auto bytes = static_cast<double>(count * (size_of(from) + size_of(type)));
  BenchResult result{job, kKeys, type, threads(), "rotate out of place", bytes, {}};
  const auto out_of_place = [&] { return duration_of([&] { rotate(out, k, {.first = 1000}, rope); }); };
  result.times = limits::compare(
      {{"out of place", out_of_place}},
      [&] {
        stop_if_signalled();
        if (form != nullptr) {
          rotate_into(cache, slots, k, {.first = 1000}, *form);
        } else {
          copy_into(cache, slots, k);
        }
      },
      effort);
  return result;
}

double prefill_of_ready(const Rotation& made, const Rotation& ready, const limits::Effort& effort) {
  const Pair x(kPrefill, DataType::kF32);
  const auto with_table = [&] {
    stop_if_signalled();
    return duration_of([&] { rotate(x.views(), {}, ready); });
  };
  const auto without = [&] { rotate(x.views(), {}, made); };
  return limits::compare({{"ready", with_table}}, without, effort).ratio;
}

// Many steps over the same memory, which is then in a cache, as when a model decodes.
class InCache {
 public:
  InCache(const limits::Effort& effort, const Extents& shape, DataType type, std::vector<std::int64_t> ids = {})
      : effort_(effort), shape_(shape), type_(type), x_(shape, type), ids_(std::move(ids)) {}

  BenchResult measure(const std::string& job, const Rotation& form) const {
    BenchResult result{job, shape_, type_, threads(), "in-place", x_.bytes(), {}};
    std::vector<limits::Loop> loops = x_.limits();
    for (limits::Loop& loop : loops) {
      loop.once = [once = std::move(loop.once)] {
        double seconds = 0;
        for (int step = 0; step < kSteps; ++step) seconds += once();
        return seconds;
      };
    }
    const auto job_steps = [&] { run(form); };
    result.times = limits::compare(loops, job_steps, effort_);
    result.times.seconds /= kSteps;
    result.times.limit_seconds /= kSteps;
    return result;
  }
  double of_ready(const Rotation& made, const Rotation& ready) const {
    const auto with_table = [&] { return duration_of([&] { run(ready); }); };
    const auto without = [&] { run(made); };
    return limits::compare({{"ready", with_table}}, without, effort_).ratio;
  }

 private:
  void run(const Rotation& form) const {
    stop_if_signalled();
    for (int step = 0; step < kSteps; ++step) rotate(x_.views(), {.ids = ids_}, form);
  }

  limits::Effort effort_;
  Extents shape_;
  DataType type_;
  Pair x_;
  std::vector<std::int64_t> ids_;
};

}  // namespace

std::vector<BenchResult> measure_rotate(const limits::Effort& effort, bool all) {
  const Rotation halves = prepare(Rope{.dims = kFeatures});
  const Rotation interleaved = prepare(Rope{.dims = kFeatures, .layout = PairLayout::kInterleaved});
  const ReadyTable ready_halves(halves), ready_interleaved(interleaved);
  std::vector<BenchResult> results;
  const auto prefill = [&](const std::string& job, DataType type, const Rotation& form) {
    results.push_back(measure_prefill(job, type, form, effort));
    return results.back().gb_per_s();
  };
  const double ready_gbs = prefill("rotate halves, ready", DataType::kF32, ready_halves.form());
  const double made_gbs = prefill("rotate halves, made inside", DataType::kF32, halves);
  results.back().of_ready = prefill_of_ready(halves, ready_halves.form(), effort);
  results.push_back(measure_shift(halves, ready_halves.form(), effort));
  prefill("rotate interleaved, ready", DataType::kF32, ready_interleaved.form());
  for (const DataType type : {DataType::kBF16, DataType::kF16}) {
    const InCache chunk(effort, kChunk, type);
    const auto both = [&](const std::string& layout, const Rotation& made, const Rotation& ready) {
      prefill("rotate " + layout + ", ready", type, ready);
      prefill("rotate " + layout + ", made inside", type, made);
      results.push_back(chunk.measure("rotate " + layout + " in a cache, ready", ready));
      results.push_back(chunk.measure("rotate " + layout + " in a cache, made inside", made));
    };
    both("halves", halves, ready_halves.form());
    both("interleaved", interleaved, ready_interleaved.form());
  }
  // half a group of AVX-512's vectors
  const Extents short_heads = {1, 4096, 32, kFeatures / 2};
  const Rotation half = prepare(Rope{.dims = kFeatures / 2});
  results.push_back(measure_prefill("rotate halves, made inside", DataType::kBF16, half, effort, short_heads));
  for (const DataType type : {DataType::kF32, DataType::kBF16, DataType::kF16}) {
    results.push_back(measure_into("rotate_into from f32", DataType::kF32, type, &halves, effort));
    results.push_back(measure_into("copy_into from f32", DataType::kF32, type, nullptr, effort));
  }
  for (const DataType type : {DataType::kBF16, DataType::kF16}) {
    results.push_back(measure_into("rotate_into from its type", type, type, &halves, effort));
  }
  if (all) {
    prefill("rotate interleaved, made inside", DataType::kF32, interleaved);
    prefill("rotate halves, ready", DataType::kF64, ready_halves.form());
  }

  const InCache decode(effort, kDecode, DataType::kF32, irregular_positions());
  results.push_back(decode.measure("decode halves, ready", ready_halves.form()));
  results.back().prefill_gbs = ready_gbs;
  results.push_back(decode.measure("decode halves, made inside", halves));
  results.back().prefill_gbs = made_gbs;
  results.back().of_ready = decode.of_ready(halves, ready_halves.form());
  return results;
}

}  // namespace posenc::bench
