#include "benchmarks/limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/loops.h"

namespace posenc::limits {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// work(thread) on so many threads; the clock runs from when all are ready until all are done.
template <class Work> double together(int threads, const Work& work) {
  std::barrier<> ready(std::max(threads, 1));
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) {
    others.emplace_back([&, thread] {
      ready.arrive_and_wait();
      work(thread);
    });
  }
  ready.arrive_and_wait();
  const Clock::time_point begin = Clock::now();
  work(0);
  others.clear();  // joins
  return seconds_since(begin);
}

// The same on equal shares of the memory.
template <class Work> double shared_by_threads(std::span<std::byte> memory, int threads, const Work& work) {
  const std::size_t share = memory.size() / static_cast<std::size_t>(std::max(threads, 1)) / kLoopStep * kLoopStep;
  return together(threads, [&](int thread) {
    const std::size_t begin = static_cast<std::size_t>(thread) * share;
    work(thread + 1 >= threads ? memory.subspan(begin) : memory.subspan(begin, share));
  });
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

Memory::Memory(std::size_t bytes) : size_(bytes) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(data);
  // a machine without huge pages is measured as it is
  madvise(data, bytes, MADV_HUGEPAGE);
  std::memset(data, 0, bytes);
}

Memory::~Memory() { munmap(data_, size_); }

namespace {

std::vector<Loop> loops_over(
    std::span<std::byte> memory, int threads,
    std::initializer_list<std::pair<std::string_view, void (*)(std::span<std::byte>)>> works) {
  std::vector<Loop> loops;
  for (const auto& [name, work] : works) {
    loops.push_back({name, [=, work = work] { return shared_by_threads(memory, threads, work); }});
  }
  return loops;
}

}  // namespace

std::vector<Loop> write_loops(std::span<std::byte> memory, int threads) {
  return loops_over(memory, threads, {{"plain", store_plain}, {"streaming", store_streaming}});
}

std::vector<Loop> in_place_loops(std::span<std::byte> memory, int threads) {
  return loops_over(memory, threads,
                    {{"plain", change_plain}, {"prefetched", change_prefetched}, {"streaming", change_streaming}});
}

std::vector<Loop> read_loops(std::span<std::byte> memory, int threads) {
  return loops_over(memory, threads,
                    {{"plain", read_plain}, {"prefetched", read_prefetched}, {"far", read_prefetched_far}});
}

double peak_once(int threads) {
  static const double of_a_round = multiply_add(1);
  const auto rounds = static_cast<std::int64_t>(kPeakOperations / of_a_round);
  return together(threads, [&](int) { multiply_add(rounds); });
}

std::vector<Comparison> compare_each(const std::vector<Loop>& loops, const std::function<void()>& job,
                                     const Effort& effort) {
  constexpr int kFewest = 3;
  std::vector<double> seconds;
  std::vector<std::vector<double>> loop_seconds(loops.size()), ratios(loops.size());
  const Clock::time_point start = Clock::now();
  for (const Loop& loop : loops) loop.once();
  job();
  for (int i = 0; i < effort.repeats && (i < kFewest || seconds_since(start) < effort.seconds); ++i) {
    for (std::size_t l = 0; l < loops.size(); ++l) loop_seconds[l].push_back(loops[l].once());
    const Clock::time_point begin = Clock::now();
    job();
    seconds.push_back(seconds_since(begin));
    for (std::size_t l = 0; l < loops.size(); ++l) ratios[l].push_back(loop_seconds[l].back() / seconds.back());
  }
  std::vector<Comparison> comparisons;
  for (std::size_t l = 0; l < loops.size(); ++l) {
    comparisons.push_back({median(seconds), median(loop_seconds[l]), median(ratios[l]), loops[l].name});
  }
  return comparisons;
}

Comparison compare(const std::vector<Loop>& loops, const std::function<void()>& job, const Effort& effort) {
  const std::vector<Comparison> all = compare_each(loops, job, effort);
  return *std::min_element(all.begin(), all.end(), [](const Comparison& one, const Comparison& other) {
    return one.limit_seconds < other.limit_seconds;
  });
}

}  // namespace posenc::limits
