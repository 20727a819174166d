#include "benchmarks/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "benchmarks/allocations.h"
#include "cli/system/signals.h"
#include "cli/system/terminal.h"
#include "posenc/attention.h"
#include "posenc/backend.h"
#include "posenc/half_types.h"
#include "posenc/scheme.h"

namespace posenc::bench {
namespace {

using cli::dim;
using cli::pad_right;
using cli::stop_if_signalled;

constexpr std::int64_t kKeyHeads = 8, kCachedFeatures = 64;
constexpr DataType kTypesOf8Bits[] = {DataType::kE4M3, DataType::kQ8_0};
bool is_of_8_bits(DataType type) { return std::ranges::find(kTypesOf8Bits, type) != std::end(kTypesOf8Bits); }

double seconds_of_call(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// A cache: its heads, and how it lies in memory.
struct CacheShape {
  std::int64_t key_heads = kKeyHeads, features = kCachedFeatures;
  std::int64_t page = 0;        // tokens of a page; 0: one array
  bool is_token_major = false;  // [tokens, heads, features], of a page too

  // [1, heads, keys, features], or [pages, heads, tokens of a page, features]
  Extents extents(std::int64_t keys) const {
    return page == 0 ? Extents{1, key_heads, keys, features} : Extents{keys / page, key_heads, page, features};
  }
  ConstTensorView view(const void* data, DataType type, std::int64_t keys) const {
    Extents shape = extents(keys);
    if (!is_token_major) return {data, type, shape};
    std::swap(shape[1], shape[2]);
    return swap_axes(ConstTensorView(data, type, shape), 1, 2);
  }
};

// A cache, a few queries, and a plan for them.
struct Step {
  CacheShape shape;
  std::int64_t key_count;
  Extents keys, queries;
  std::int64_t seen;          // keys that the mask leaves visible
  DataType type, query_type;  // of the cache, and of q and out
  limits::Memory memory;      // k, v, q, out
  std::vector<std::int32_t> block_table;
  std::vector<std::int64_t> lengths;
  AttentionPlan plan;
  std::vector<std::byte> workspace;

  Step(std::int64_t query_count, std::int64_t group, std::int64_t a_key_count, DataType a_type,
       const AttentionOptions& options, const CacheShape& a_shape = {})
      : shape(a_shape),
        key_count(a_key_count),
        keys(shape.extents(key_count)),
        queries({1, shape.key_heads * group, query_count, shape.features}),
        seen(!options.key_lengths.empty() ? options.key_lengths[0]
             : options.window > 0         ? options.window
                                          : key_count),
        type(a_type),
        query_type(is_of_8_bits(type) ? DataType::kBF16 : type),
        memory(static_cast<std::size_t>(2 * (cache_bytes(count_of(keys)) + count_of(queries) * size_of(query_type)))),
        block_table(scattered(shape.page == 0 ? 0 : key_count / shape.page)),
        lengths(shape.page == 0 ? 0 : 1, key_count),
        plan(plan_attention({q(), k(), v()}, with_pages(options))),
        workspace(workspace_bytes(plan)) {
    // values of about 1 in any of the types, and of any size in e4m3, without its NaN
    const auto bytes = memory.bytes();
    const auto cached = static_cast<std::size_t>(is_of_8_bits(type) ? 2 * cache_bytes(count_of(keys)) : 0);
    for (std::size_t i = 0; i < cached; ++i) bytes[i] = static_cast<std::byte>((i * 2654435761U >> 13) & 0xBE);
    for (std::size_t i = 0; type == DataType::kQ8_0 && i < cached; i += sizeof(Q8Block)) {
      bytes[i] = std::byte{0}, bytes[i + 1] = std::byte{0x20};  // scales of 2^-7
    }
    for (std::size_t i = cached; i < bytes.size(); ++i) {
      const bool is_top = (i + 1) % static_cast<std::size_t>(size_of(query_type)) == 0;
      bytes[i] = static_cast<std::byte>(is_top ? 0x3e | ((i * 2654435761U >> 13) & 0x81) : i * 40503U >> 5);
    }
  }
  // Pages in no order, as a pool has them after a while.
  static std::vector<std::int32_t> scattered(std::int64_t pages) {
    std::vector<std::int32_t> table;
    for (std::int64_t i = 0; i < pages; ++i) table.push_back(static_cast<std::int32_t>(i));
    for (std::size_t i = table.size(); i > 1; --i) std::swap(table[i - 1], table[i * 2654435761U % i]);
    return table;
  }
  AttentionOptions with_pages(AttentionOptions options) const {
    if (block_table.empty()) return options;
    options.block_table = block_table;
    options.key_lengths = lengths;
    return options;
  }
  std::int64_t cache_bytes(std::int64_t elements) const { return elements / elements_of_block(type) * size_of(type); }
  // After so many elements of the cache, and of the queries.
  std::byte* at(std::int64_t cached, std::int64_t queried = 0) const {
    return memory.bytes().data() + cache_bytes(cached) + queried * size_of(query_type);
  }
  ConstTensorView k() const { return shape.view(at(0), type, key_count); }
  ConstTensorView v() const { return shape.view(at(count_of(keys)), type, key_count); }
  ConstTensorView q() const { return {at(2 * count_of(keys)), query_type, queries}; }
  TensorView out() const { return {at(2 * count_of(keys), count_of(queries)), query_type, queries}; }
  // as many bytes as a step must read
  std::span<std::byte> cache() const {
    return memory.bytes().first(static_cast<std::size_t>(2 * cache_bytes(shape.key_heads * seen * shape.features)));
  }
  void run() {
    stop_if_signalled();
    attention(plan, out(), q(), k(), v(), {.workspace = workspace});
  }
};

AttentionFigure measure_step(const std::string& job, Step& step, const limits::Effort& effort,
                             const std::function<void()>& without = {}) {
  std::vector<limits::Loop> loops = limits::read_loops(step.cache(), threads());
  const std::size_t reads = loops.size();
  if (without) loops.push_back({"none", [&] { return seconds_of_call(without); }});
  const std::vector<limits::Comparison> beside = limits::compare_each(
      loops, [&] { step.run(); }, effort);
  const auto limit = std::min_element(
      beside.begin(), beside.begin() + static_cast<std::ptrdiff_t>(reads),
      [](const limits::Comparison& a, const limits::Comparison& b) { return a.limit_seconds < b.limit_seconds; });
  AttentionFigure figure;
  figure.job = job;
  figure.shape = step.keys;
  figure.type = step.type;
  figure.threads = threads();
  figure.seconds = limit->seconds;
  figure.bytes = static_cast<double>(step.cache().size());
  figure.limit_bytes = figure.bytes / limit->limit_seconds;
  figure.limit_loop = limit->loop;
  figure.ratio = limit->ratio;
  if (without) figure.over_none = 1 / beside.back().ratio;
  constexpr int kSteps = 8;
  const auto before = allocations();
  for (int i = 0; i < kSteps; ++i) step.run();
  if (const auto after = allocations()) figure.allocations = static_cast<double>(*after - *before) / kSteps;
  return figure;
}

// The caches that engines have, beside [heads, keys, features] in one array: 32 heads of q share 8 of 128 features, and 8
// heads of 64 features have no groups. "16 [t, h, d]" is pages of 16 tokens with heads inside. And masks over them.
void measure_layouts(DataType type, const limits::Effort& effort, std::vector<AttentionFigure>& figures) {
  constexpr std::int64_t kKeys = 16384;
  for (const auto& [group, features] : {std::pair<std::int64_t, std::int64_t>{4, 128}, {1, 64}}) {
    const std::string shape = fmt::format("{}/8x{}", 8 * group, features);
    const auto step_of = [&, group = group, features = features](std::int64_t page, bool is_token_major,
                                                                 const AttentionOptions& options) {
      return Step(1, group, kKeys, type, options,
                  {.features = features, .page = page, .is_token_major = is_token_major});
    };
    Step plain = step_of(0, false, {.causal = true});
    figures.push_back(measure_step(shape, plain, effort));
    const auto add = [&](const std::string& what, Step step, std::string bar) {
      figures.push_back(measure_step(shape + what, step, effort, [&] { plain.run(); }));
      figures.back().bar = std::move(bar);
    };
    for (const bool is_token_major : {true, false}) {
      const char* const inner = is_token_major ? "[t, h, d]" : "[h, t, d]";
      if (is_token_major) add(", [t, h, d]", step_of(0, true, {.causal = true}), "over none <= +11 %");
      for (const std::int64_t page : {16, 64}) {
        add(fmt::format(", {} {}", page, inner), step_of(page, is_token_major, {.causal = true}),
            page == 16 ? "over none <= +11 %" : "over none <= +5 %");
      }
    }
    const std::vector<std::int64_t> padding(kKeys, 1);
    const std::vector<std::uint8_t> seen(kKeys, 1);
    const std::vector<float> scores(kKeys, 0.5f);
    const std::string bar = "over none <= +15 %";
    add(", key_mask", step_of(0, false, {.causal = true, .key_mask = padding}), bar);
    add(", mask", step_of(0, false, {.causal = true, .mask = view(seen.data(), {kKeys})}), bar);
    add(", mask of scores", step_of(0, false, {.causal = true, .mask = view(scores.data(), {kKeys})}), bar);
    add(", softcap", step_of(0, false, {.causal = true, .softcap = 50}), bar);
  }
}

// A cache of 8 bits beside one of bf16: half the bytes, or 17 of 32.
void measure_8_bits(DataType type, const limits::Effort& effort, std::vector<AttentionFigure>& figures) {
  for (const auto& [group, features] :
       {std::pair<std::int64_t, std::int64_t>{1, 64}, {1, 128}, {2, 64}, {4, 64}, {4, 128}, {8, 64}, {16, 64}}) {
    const CacheShape shape{.features = features};
    const AttentionOptions options{.causal = true};
    Step plain(1, group, 16384, DataType::kBF16, options, shape), step(1, group, 16384, type, options, shape);
    const std::string job = fmt::format("{}/8x{}, over bf16", 8 * group, features);
    figures.push_back(measure_step(job, step, effort, [&] { plain.run(); }));
    figures.back().bar = "over none <= -41 %";
  }
}

}  // namespace

std::vector<AttentionFigure> measure_decode(const limits::Effort& effort) {
  std::vector<AttentionFigure> figures;
  const DataType types[] = {DataType::kF32, DataType::kBF16, DataType::kF16};
  for (const std::int64_t keys : {2048, 16384}) {
    double one_seconds[3] = {};  // for one query and one query head per key head
    for (const std::int64_t group : {1, 4, 8, 16}) {
      for (const std::int64_t queries : {1, 2, 4, 8, 16}) {
        if (group == 16 && queries > 1) break;
        double f32_seconds = 0;
        for (std::size_t kind = 0; kind < 3; ++kind) {
          const DataType type = types[kind];
          Step step(queries, group, keys, type, {.causal = true});
          AttentionFigure figure = measure_step(fmt::format("{} queries, GQA {}", queries, group), step, effort);
          if (type == DataType::kF32) f32_seconds = figure.seconds;
          figure.over_f32 = type == DataType::kF32 ? 0 : f32_seconds / figure.seconds;
          const std::int64_t rows = queries * group;
          if (rows == 1) one_seconds[kind] = figure.seconds;
          figure.bar = "0 allocs";
          if (rows > 1) {
            figure.bar +=
                fmt::format(", <= {} x one query's time: {:.1f} x", rows, figure.seconds / one_seconds[kind]);
          } else if (keys > 2048) {  // larger than a cache
            figure.bar += type == DataType::kF32 ? ", of limit >= 85 %" : ", over f32 >= 1.7";
          }
          figures.push_back(std::move(figure));
        }
      }
    }
  }
  std::vector<float> buckets(32 * kKeyHeads);
  for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] = std::sin(static_cast<float>(i));
  const Form t5 = prepare(T5{.heads = kKeyHeads, .bidirectional = false},
                          {.weights = view(static_cast<const float*>(buckets.data()), {32, kKeyHeads})});
  const std::vector<std::int64_t> begun_lengths = {64};  // of a cache that has just been started
  for (const DataType type : types) {
    Step none(1, 1, 16384, type, {.causal = true});
    Step slopes(1, 1, 16384, type, {.position = prepare(Alibi{.heads = kKeyHeads}), .causal = true});
    Step table(1, 1, 16384, type, {.position = t5, .causal = true});
    Step window(1, 1, 16384, type, {.causal = true, .window = 1024});
    for (auto& [job, step] : {std::pair<const char*, Step&>("decode, alibi", slopes), {"decode, t5", table}}) {
      figures.push_back(measure_step(job, step, effort, [&] { none.run(); }));
      figures.back().bar = "over none <= +10 %";
    }
    figures.push_back(measure_step("window of 1024", window, effort, [&] { none.run(); }));
    figures.back().bar = "over none <= -90 %";  // a sixteenth of the keys
    Step begun(1, 1, 16384, type, {.causal = true, .key_lengths = begun_lengths});
    figures.push_back(measure_step("64 keys so far", begun, effort, [&] { none.run(); }));
    figures.back().bar = "<= 0.1 ms";
  }
  for (const DataType type : types) measure_layouts(type, effort, figures);
  for (const DataType type : kTypesOf8Bits) measure_8_bits(type, effort, figures);
  return figures;
}

std::vector<PrepareFigure> measure_prepare(const limits::Effort& effort) {
  struct Job {
    std::string_view name;
    std::function<void()> run;
    double bar_seconds = 0;
  };
  const Rope rope{.dims = 128, .base = 500'000.0};
  const std::vector<float> buckets(32 * kKeyHeads, 0.5f);
  const ConstTensorView table = view(buckets.data(), {32, kKeyHeads});
  Bias t5 = prepare(T5{.heads = kKeyHeads}, {.weights = table});
  const Job jobs[] = {
      {"rope, 128 dims", [&] { (void)prepare(rope); }, 60e-6},
      {"rope, hf-f32", [&] { (void)prepare(rope, {.numerics = Numerics::kHfF32}); }, 300e-6},
      {"rope, llama3", [&] { (void)prepare(Rope{.dims = 128, .base = 5e5, .scaling = Llama3Scaling{.factor = 8}}); }},
      {"alibi, 112 heads", [] { (void)prepare(Alibi{.heads = 112}); }, 300e-6},
      {"t5, 8 heads", [&] { (void)prepare(T5{.heads = kKeyHeads}, {.weights = table}); }},
      {"t5, bind a table", [&] { posenc::bind(t5, table); }, 1e-6},
  };
  std::vector<PrepareFigure> figures;
  for (const Job& job : jobs) {
    std::vector<double> seconds;
    job.run();
    for (int i = 0; i < std::max(effort.repeats, 1); ++i) {
      stop_if_signalled();
      seconds.push_back(seconds_of_call(job.run));
    }
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                     seconds.end());
    figures.push_back({std::string(job.name), seconds[seconds.size() / 2], job.bar_seconds});
  }
  return figures;
}

Json as_json(const PrepareFigure& figure) {
  Json::Object object = {{"job", "prepare"}, {"scheme", figure.scheme}, {"seconds", figure.seconds}};
  if (figure.bar_seconds > 0) object.emplace_back("bar_seconds", figure.bar_seconds);
  return object;
}

std::string as_text(const std::vector<PrepareFigure>& figures, bool colour) {
  std::string text = dim(fmt::format("{}  {:>9}  bar\n", pad_right("prepare", 16), "time"), colour);
  for (const PrepareFigure& figure : figures) {
    text += fmt::format("{}  {:>9}{}\n", pad_right(figure.scheme, 16), fmt::format("{:.0f} us", figure.seconds * 1e6),
                        figure.bar_seconds > 0 ? fmt::format("  <= {:.0f} us", figure.bar_seconds * 1e6) : "");
  }
  return text;
}

}  // namespace posenc::bench
