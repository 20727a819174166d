#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace posenc::limits {

/// Memory as benchmarks need it: huge pages asked for and every page touched, because the first touch of a
/// fresh page costs more than the work that is to be measured.
class Memory {
 public:
  /// Throws: std::bad_alloc.
  explicit Memory(std::size_t bytes);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  std::span<std::byte> bytes() const { return {data_, size_}; }
  template <class T> T* as() const { return reinterpret_cast<T*>(data_); }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// One loop that does a job's traffic, or its arithmetic, and nothing else: the seconds of one pass, split evenly over so
/// many threads.
struct Loop {
  std::string_view name;
  std::function<double()> once;
};
/// What the machine can do at most is what the fastest of these does, in the same run. `memory` begins at a multiple of
/// 64 bytes and should be much larger than the caches.

/// Stores: what making a table is measured against. Plain, streaming.
std::vector<Loop> write_loops(std::span<std::byte> memory, int threads);
/// Loads, adds and stores back; the values stay as they are. What x += p is measured against. Plain, prefetched,
/// streaming.
std::vector<Loop> in_place_loops(std::span<std::byte> memory, int threads);
/// Loads: what decoding with a cache is measured against. Plain, prefetched for the second cache, or for the third (far).
std::vector<Loop> read_loops(std::span<std::byte> memory, int threads);

/// Operations of multiply-adds that stay in registers, float32, with the widest vectors there are: the arithmetic peak of
/// the cores, which attention is measured against.
inline constexpr double kPeakOperations = 1e9;
/// Seconds for that many operations on each of so many threads.
double peak_once(int threads);

/// Whether OpenBLAS is on this machine. It is looked for when first asked, so that nothing else loads it.
bool has_sgemm();
/// The product of two float32 matrices of n × n by OpenBLAS, 2n³ operations: shown beside attention.
/// Requires has_sgemm().
class Sgemm {
 public:
  explicit Sgemm(std::int64_t n);
  double once(int threads) const;
  double operations() const { return 2.0 * static_cast<double>(n_ * n_ * n_); }

 private:
  std::int64_t n_;
  Memory matrices_;
};

/// A job beside its limit, both over the same bytes.
struct Comparison {
  double seconds = 0;          // of the job, median
  double limit_seconds = 0;    // of the limit, median
  double ratio = 0;            // limit / job, median of the ratios of neighbours: 1 is as fast as can be
  std::string_view loop = {};  // the limit's name
};

/// At most so often, and no longer once so many seconds have passed, but three times at least.
struct Effort {
  int repeats = 11;
  double seconds = 4;
};

/// Runs loops and job alternately, after one round that does not count, so that all meet the same noise. One Comparison
/// for each loop.
std::vector<Comparison> compare_each(const std::vector<Loop>& loops, const std::function<void()>& job,
                                     const Effort& effort);
/// The one with the fastest of the loops.
Comparison compare(const std::vector<Loop>& loops, const std::function<void()>& job, const Effort& effort);

}  // namespace posenc::limits
