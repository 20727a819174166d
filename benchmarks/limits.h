#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

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

/// What the machine can do at most, each as the seconds of one pass over the memory, split evenly over so many
/// threads. `memory` begins at a multiple of 64 bytes and should be much larger than the caches.

/// Stores and nothing else: what making a table is measured against.
double write_once(std::span<std::byte> memory, int threads);
/// Loads, adds and stores back; the values stay as they are. What x += p is measured against.
double change_in_place_once(std::span<std::byte> memory, int threads);

/// Loads and nothing else: what decoding with a cache is measured against.
double read_once(std::span<std::byte> memory, int threads);

/// Whether OpenBLAS is on this machine. It is looked for when first asked, so that nothing else loads it.
bool has_sgemm();
/// The product of two float32 matrices of n × n by OpenBLAS, 2n³ operations: what attention is measured against.
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
  double seconds = 0;        // of the job, median
  double limit_seconds = 0;  // of the limit, median
  double ratio = 0;          // limit / job, median of the ratios of neighbours: 1 is as fast as can be
};

/// At most so often, and no longer once so many seconds have passed, but three times at least.
struct Effort {
  int repeats = 11;
  double seconds = 4;
};

/// Runs the two alternately, after one round that does not count, so that both meet the same noise.
Comparison compare(const std::function<double()>& limit, const std::function<void()>& job, const Effort& effort);

}  // namespace posenc::limits
