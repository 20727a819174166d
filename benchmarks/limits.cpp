#include "benchmarks/limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

namespace posenc::limits {
namespace {

using Clock = std::chrono::steady_clock;

// 16 bytes, which every machine we build for moves at once.
typedef std::uint64_t Vector __attribute__((vector_size(16), may_alias));  // NOLINT: using cannot carry may_alias
constexpr std::size_t kUnroll = 8;
constexpr std::size_t kStep = kUnroll * sizeof(Vector);

// A compiler that knew the addend is 0 would leave the work out.
const volatile std::uint64_t kNoChange = 0;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Inlining would let a compiler see that nobody reads what is stored.
[[gnu::noinline]] void store(std::span<std::byte> memory, std::uint64_t pattern) {
  const Vector value = {pattern, ~pattern};
  auto* p = reinterpret_cast<Vector*>(memory.data());
  auto* const end = p + memory.size() / kStep * kUnroll;
  for (; p != end; p += kUnroll) {
    for (std::size_t i = 0; i < kUnroll; ++i) p[i] = value;
  }
}

// Integers: as floating point, the bits of another job's data might be denormal and slow.
[[gnu::noinline]] void change(std::span<std::byte> memory, std::uint64_t addend) {
  const Vector value = {addend, addend};
  auto* p = reinterpret_cast<Vector*>(memory.data());
  auto* const end = p + memory.size() / kStep * kUnroll;
  for (; p != end; p += kUnroll) {
    for (std::size_t i = 0; i < kUnroll; ++i) p[i] += value;
  }
}

// The sum is kept where a compiler cannot know that nobody wants it.
volatile std::uint64_t read_sum = 0;
[[gnu::noinline]] void read(std::span<std::byte> memory) {
  Vector sums[4] = {};
  const auto* p = reinterpret_cast<const Vector*>(memory.data());
  const auto* const end = p + memory.size() / kStep * kUnroll;
  for (; p != end; p += kUnroll) {
    for (std::size_t i = 0; i < kUnroll; ++i) sums[i % 4] ^= p[i];
  }
  const Vector all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  read_sum = all[0] ^ all[1];
}

// Work on equal shares of the memory; the clock runs from when all threads stand ready until all are done.
template <class Work> double shared_by_threads(std::span<std::byte> memory, int threads, const Work& work) {
  if (threads <= 1) {
    const Clock::time_point begin = Clock::now();
    work(memory);
    return seconds_since(begin);
  }
  const std::size_t share = memory.size() / static_cast<std::size_t>(threads) / kStep * kStep;
  std::barrier<> ready(threads);
  std::vector<std::jthread> others;
  const auto share_of = [&](int thread) {
    const std::size_t begin = static_cast<std::size_t>(thread) * share;
    return thread + 1 == threads ? memory.subspan(begin) : memory.subspan(begin, share);
  };
  for (int thread = 1; thread < threads; ++thread) {
    others.emplace_back([&, thread] {
      ready.arrive_and_wait();
      work(share_of(thread));
    });
  }
  ready.arrive_and_wait();
  const Clock::time_point begin = Clock::now();
  work(share_of(0));
  others.clear();  // joins
  return seconds_since(begin);
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

double write_once(std::span<std::byte> memory, int threads) {
  return shared_by_threads(memory, threads, [](std::span<std::byte> part) { store(part, 0x3f0123453f89abcd); });
}

double change_in_place_once(std::span<std::byte> memory, int threads) {
  return shared_by_threads(memory, threads, [](std::span<std::byte> part) { change(part, kNoChange); });
}

double read_once(std::span<std::byte> memory, int threads) {
  return shared_by_threads(memory, threads, [](std::span<std::byte> part) { read(part); });
}

Comparison compare(const std::function<double()>& limit, const std::function<void()>& job, const Effort& effort) {
  constexpr int kFewest = 3;
  std::vector<double> seconds, limit_seconds, ratios;
  const Clock::time_point start = Clock::now();
  limit();
  job();
  for (int i = 0; i < effort.repeats && (i < kFewest || seconds_since(start) < effort.seconds); ++i) {
    limit_seconds.push_back(limit());
    const Clock::time_point begin = Clock::now();
    job();
    seconds.push_back(seconds_since(begin));
    ratios.push_back(limit_seconds.back() / seconds.back());
  }
  return {median(seconds), median(limit_seconds), median(ratios)};
}

}  // namespace posenc::limits
