#include "benchmarks/cuda_figures.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>

#include "posenc/apply.h"
#include "posenc/cache.h"
#include "posenc/cuda.h"
#include "posenc/scheme.h"

namespace posenc::figures {
namespace {

constexpr int kRepeats = 30, kWarmUp = 6;
constexpr int kSets = 3;  // buffers in rotation, so that no launch finds its data in the cache

struct Times {
  double with_launch, alone;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

// work(n) orders the n-th round.
Times time_of(const std::function<void(int)>& work) {
  for (int n = 0; n < kWarmUp; ++n) work(n);
  std::vector<double> with_launch, alone;
  for (int n = 0; n < kRepeats; ++n) {
    with_launch.push_back(cuda::time_once([&] { work(n); }));
    alone.push_back(cuda::time_once([&] { work(n); }, {}, true));
  }
  return {median(with_launch), median(alone)};
}

/// Values of about −2 to 2 in every place: zeros would be faster than what is true.
void fill_randomly(const cuda::Memory& memory, DataType type) {
  std::mt19937_64 random(1);
  std::vector<std::uint32_t> words(std::size_t{1} << 20);
  for (std::uint32_t& word : words) {
    const auto bits = static_cast<std::uint32_t>(random());
    word = type == DataType::kF32 ? (bits & 0x807FFFFFu) | 0x3F800000u : (bits & 0x807F807Fu) | 0x3F803F80u;
  }
  for (std::size_t at = 0; at < memory.size(); at += words.size() * 4) {
    memory.write(words.data(), std::min(words.size() * 4, memory.size() - at), at);
  }
}

struct Limits {
  double copy, write;  // GB/s
};
Limits measure_limits() {
  constexpr std::size_t kBytes = std::size_t{2} << 30;
  const cuda::Memory a(kBytes), b(kBytes);
  fill_randomly(a, DataType::kBF16);
  fill_randomly(b, DataType::kBF16);
  const double copy = time_of([&](int) { cuda::copy(b.as<void>(), a.as<void>(), kBytes); }).with_launch;
  const double write = time_of([&](int) { cuda::write_all(b.as<void>(), kBytes); }).with_launch;
  return {2.0 * kBytes / copy / 1e6, 1.0 * kBytes / write / 1e6};
}

struct Bar {
  double of_limit;
  std::string bar, goal;
};
CudaFigure figure(std::string job, const Times& times, double bytes, std::string limit, double limit_gb, Bar bar) {
  CudaFigure one{
      std::move(job), times.with_launch, times.alone, bytes / times.with_launch / 1e6, std::move(limit), limit_gb,
      bar.bar,        bar.goal,          false};
  one.meets_bar = one.of_limit() >= bar.of_limit;
  return one;
}

struct Shape {
  std::int64_t batch, sequence, heads, key_heads, features;
};

struct RotateSet {
  cuda::Memory q, k;
};

std::vector<RotateSet> rotate_sets(const Shape& s, DataType type) {
  std::vector<RotateSet> sets;
  const auto tokens = static_cast<std::size_t>(s.batch * s.sequence * s.features * size_of(type));
  for (int n = 0; n < kSets; ++n) {
    sets.push_back({cuda::Memory(tokens * static_cast<std::size_t>(s.heads)),
                    cuda::Memory(tokens * static_cast<std::size_t>(s.key_heads))});
    fill_randomly(sets.back().q, type);
    fill_randomly(sets.back().k, type);
  }
  return sets;
}
QueryKey<TensorView> views_of(const RotateSet& set, const Shape& s, DataType type) {
  const auto of = [&](const cuda::Memory& x, std::int64_t heads) {
    return swap_axes(on(Device::kCuda, TensorView(x.as<void>(), type, {s.batch, s.sequence, heads, s.features})), 1,
                     2);
  };
  return {of(set.q, s.heads), of(set.k, s.key_heads)};
}

CudaFigure measure_rotate(const std::string& job, const Shape& s, DataType type, const Rotation& form,
                          const Limits& limits, const Bar& bar) {
  const auto sets = rotate_sets(s, type);
  const Times times = time_of(
      [&](int n) { rotate(views_of(sets[static_cast<std::size_t>(n % kSets)], s, type), {.first = 0}, form); });
  const double bytes =
      2.0 * static_cast<double>(s.batch * s.sequence * (s.heads + s.key_heads) * s.features * size_of(type));
  return figure(job, times, bytes, "copy", limits.copy, bar);
}

// One new token in each of 256 sequences, each at a position of its own, which lies on the GPU.
std::vector<CudaFigure> measure_decode(const Rotation& form) {
  const Shape s{256, 1, 32, 8, 128};
  const auto sets = rotate_sets(s, DataType::kBF16);
  std::vector<std::int64_t> ids;
  for (std::int64_t n = 0; n < s.batch; ++n) ids.push_back((n * 7919 + 12345) % 131072);
  const cuda::Memory gpu_ids = cuda::memory_of(ids);
  const Positions positions{.ids = {gpu_ids.as<const std::int64_t>(), ids.size()}, .device = Device::kCuda};
  const Times times = time_of([&](int n) {
    rotate(views_of(sets[static_cast<std::size_t>(n % kSets)], s, DataType::kBF16), positions, form);
  });
  int round = 0;
  const double in_graph = cuda::time_in_graph(
      [&](const Run& run) {
        rotate(views_of(sets[static_cast<std::size_t>(round++ % kSets)], s, DataType::kBF16), positions, form, run);
      },
      300);
  CudaFigure launched{"decode rotate B256 S1", times.with_launch, times.alone, 0, "", 0, "10 us", "10 us", false};
  launched.meets_bar = times.with_launch <= 0.010;
  CudaFigure graph{"decode rotate B256 S1, in a CUDA graph", in_graph, in_graph, 0, "", 0, "3 us", "2 us", false};
  graph.meets_bar = in_graph <= 0.003;
  return {launched, graph};
}

// q, k and v of new tokens on their way into a cache of pages of 16 tokens, whose slots are on the GPU.
struct AppendSet {
  cuda::Memory q, k, v, k_pool, v_pool;
};
class AppendWork {
 public:
  explicit AppendWork(std::int64_t tokens) : tokens_(tokens), pages_((tokens + kPage - 1) / kPage) {
    std::vector<std::int64_t> slots(static_cast<std::size_t>(pages_ * kPage)), ids;
    // Sequences of tokens that follow each other in their pages, and pages in any order.
    std::vector<std::int64_t> pages(static_cast<std::size_t>(pages_));
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), std::mt19937_64(4));
    for (std::int64_t n = 0; n < pages_ * kPage; ++n) {
      slots[static_cast<std::size_t>(n)] = pages[static_cast<std::size_t>(n / kPage)] * kPage + n % kPage;
    }
    for (std::int64_t n = 0; n < tokens; ++n) ids.push_back((n * 7919 + 12345) % 131072);
    slots_.write(slots.data(), static_cast<std::size_t>(tokens) * 8);
    ids_.write(ids.data(), static_cast<std::size_t>(tokens) * 8);
    for (int n = 0; n < kSets; ++n) {
      sets_.push_back({memory(tokens * kHeads), memory(tokens * kKeyHeads), memory(tokens * kKeyHeads),
                       memory(pages_ * kPage * kKeyHeads), memory(pages_ * kPage * kKeyHeads)});
      for (const cuda::Memory* x : {&sets_.back().q, &sets_.back().k, &sets_.back().v}) {
        fill_randomly(*x, DataType::kBF16);
      }
    }
  }
  /// Read, and written as many again.
  std::size_t bytes() const { return static_cast<std::size_t>(tokens_ * (kHeads + 2 * kKeyHeads) * kFeatures * 2); }
  void operator()(int n, const Rotation& form, const Run& run = {}) const {
    const AppendSet& set = sets_[static_cast<std::size_t>(n % kSets)];
    const auto tensor = [](const cuda::Memory& x, const Extents& shape) {
      return on(Device::kCuda, TensorView(x.as<void>(), DataType::kBF16, shape));
    };
    const auto tokens = [&](const cuda::Memory& x, std::int64_t heads) {
      return swap_axes(tensor(x, {tokens_, heads, kFeatures}), 0, 1);
    };
    const auto pool = [&](const cuda::Memory& x) {
      return swap_axes(tensor(x, {pages_, kPage, kKeyHeads, kFeatures}), 1, 2);
    };
    const auto count = static_cast<std::size_t>(tokens_);
    append({pool(set.k_pool), pool(set.v_pool)}, {std::span(slots_.as<const std::int64_t>(), count), Device::kCuda},
           {.q = tokens(set.q, kHeads),
            .k = tokens(set.k, kKeyHeads),
            .v = tokens(set.v, kKeyHeads),
            .q_out = tokens(set.q, kHeads)},
           {.ids = {ids_.as<const std::int64_t>(), count}, .device = Device::kCuda}, form, run);
  }

 private:
  static constexpr std::int64_t kPage = 16, kHeads = 32, kKeyHeads = 8, kFeatures = 128;
  static cuda::Memory memory(std::int64_t rows) {
    return cuda::Memory(static_cast<std::size_t>(rows * kFeatures * 2));
  }
  std::int64_t tokens_, pages_;
  cuda::Memory slots_ = cuda::Memory(static_cast<std::size_t>(tokens_) * 8),
               ids_ = cuda::Memory(static_cast<std::size_t>(tokens_) * 8);
  std::vector<AppendSet> sets_;
};

// A prefill beside a copy of the same bytes; a step of decoding as a graph.
std::vector<CudaFigure> measure_append(const Rotation& form) {
  const AppendWork prefill(8192), decode(256);
  const std::size_t bytes = prefill.bytes();
  const cuda::Memory from(kSets * bytes), to(kSets * bytes);
  fill_randomly(from, DataType::kBF16);
  const Times copied = time_of([&](int n) {
    const std::size_t offset = static_cast<std::size_t>(n % kSets) * bytes;
    cuda::copy(to.as<std::byte>() + offset, from.as<std::byte>() + offset, bytes);
  });
  const Times times = time_of([&](int n) { prefill(n, form); });
  CudaFigure many = figure("append bf16, 8192 tokens, HQ32 HK8 D128", times, 2.0 * static_cast<double>(bytes), "copy",
                           2.0 * static_cast<double>(bytes) / copied.with_launch / 1e6, {0.90, "90 %", "95 %"});
  CudaFigure copy{"a copy of the same bytes",
                  copied.with_launch,
                  copied.alone,
                  many.limit_gb_per_s,
                  "copy",
                  many.limit_gb_per_s,
                  "",
                  "",
                  true};
  const Times launched = time_of([&](int n) { decode(n, form); });
  CudaFigure one{"append bf16, 256 tokens", launched.with_launch, launched.alone, 0, "", 0, "", "", true};
  int round = 0;
  const double in_graph = cuda::time_in_graph([&](const Run& run) { decode(round++, form, run); }, 300);
  CudaFigure graph{
      "append bf16, 256 tokens, in a CUDA graph", in_graph, in_graph, 0, "", 0, "6 us", "3 us", in_graph <= 0.006};
  return {many, copy, one, graph};
}

CudaFigure measure_add(bool is_ready, const Limits& limits) {
  const Extents shape = {8, 8192, 4096};
  const std::size_t bytes = static_cast<std::size_t>(count_of(shape)) * 2;
  std::vector<cuda::Memory> sets;
  for (int n = 0; n < kSets; ++n) {
    sets.emplace_back(bytes);
    fill_randomly(sets.back(), DataType::kBF16);
  }
  const cuda::Memory table(bytes / 8);
  const TensorView made = on(Device::kCuda, TensorView(table.as<void>(), DataType::kBF16, {8192, 4096}));
  const Addition waves = prepare(Sinusoidal{.width = 4096});
  tabulate(made, {}, waves);
  const Addition rows{4096, Rows{made, 0}};
  const Times times = time_of([&](int n) {
    const cuda::Memory& x = sets[static_cast<std::size_t>(n % kSets)];
    add(on(Device::kCuda, TensorView(x.as<void>(), DataType::kBF16, shape)), {}, is_ready ? rows : waves);
  });
  return figure(is_ready ? "X += P bf16 B8 S8192 D4096, P ready" : "X += P bf16 B8 S8192 D4096, exact P made inside",
                times, 2.0 * static_cast<double>(bytes), "copy", limits.copy,
                is_ready ? Bar{0.90, "90 %", "94 %"} : Bar{0.93, "93 %", "95 %"});
}

CudaFigure measure_table(const std::string& job, WaveLayout layout, const Limits& limits) {
  const Extents shape = {131072, 1024};
  const std::size_t bytes = static_cast<std::size_t>(count_of(shape)) * 4;
  const cuda::Memory one(bytes), other(bytes);
  const Addition form = prepare(Sinusoidal{.width = 1024, .layout = layout});
  const Times times = time_of([&](int n) {
    tabulate(on(Device::kCuda, TensorView((n % 2 == 0 ? one : other).as<void>(), DataType::kF32, shape)), {}, form);
  });
  CudaFigure made =
      figure(job, times, static_cast<double>(bytes), "write", limits.write, {0, "4000 GB/s", "the limit"});
  made.meets_bar = made.gb_per_s >= 4000;
  return made;
}

}  // namespace

std::vector<CudaFigure> measure_cuda() {
  const Limits limits = measure_limits();
  const Rotation halves = prepare(Rope{.dims = 128, .base = 5e5});
  Rotation interleaved = halves;
  interleaved.layout = PairLayout::kInterleaved;
  const Shape many{4, 8192, 32, 8, 128}, one_long{1, 131072, 32, 8, 128};
  const Bar bf16{0.93, "93 %", "96 %"}, wide{0.96, "96 %", "98 %"};
  std::vector<CudaFigure> all = {
      measure_rotate("rotate bf16 B4 S8192, halves", many, DataType::kBF16, halves, limits, bf16),
      measure_rotate("rotate bf16 B4 S8192, interleaved", many, DataType::kBF16, interleaved, limits, bf16),
      measure_rotate("rotate f16 B4 S8192, halves", many, DataType::kF16, halves, limits, bf16),
      measure_rotate("rotate f32 B4 S8192, halves", many, DataType::kF32, halves, limits, wide),
      measure_rotate("rotate f32 B4 S8192, interleaved", many, DataType::kF32, interleaved, limits, wide),
      measure_rotate("rotate bf16 B1 S131072, halves", one_long, DataType::kBF16, halves, limits, wide),
      measure_add(false, limits),
      measure_add(true, limits),
      measure_table("exact table 131072x1024 f32, interleaved", WaveLayout::kInterleaved, limits),
      measure_table("exact table 131072x1024 f32, sines then cosines", WaveLayout::kSinCos, limits)};
  for (CudaFigure& figure : measure_decode(halves)) all.push_back(std::move(figure));
  for (CudaFigure& figure : measure_append(halves)) all.push_back(std::move(figure));
  return all;
}

}  // namespace posenc::figures
