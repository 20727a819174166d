#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "posenc/function_ref.h"
#include "posenc/tensor.h"

/// Memory, streams and timers of an NVIDIA GPU, for programs built without the CUDA toolkit; programs that use the toolkit
/// do not need this header. Everything throws Error if cuda cannot run (why_absent in backend.h).
namespace posenc::cuda {

struct Facts {
  std::string name;
  int multiprocessors = 0;
  int capability = 0;      ///< 90 for compute capability 9.0
  int driver_version = 0;  ///< of CUDA, as the driver counts: 13000 for 13.0
};
Facts facts();
/// The GPU memory that is free, in bytes.
std::size_t free_bytes();

/// A block of GPU memory that this object owns.
class Memory {
 public:
  explicit Memory(std::size_t bytes);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&&) = delete;
  ~Memory();

  std::size_t size() const { return size_; }
  template <class T> T* as() const { return reinterpret_cast<T*>(address_); }
  /// Copies and waits for completion.
  void write(const void* from, std::size_t bytes, std::size_t offset = 0) const;
  void read(void* to, std::size_t bytes, std::size_t offset = 0) const;
  template <class T> std::vector<T> values(std::size_t count, std::size_t offset = 0) const {
    std::vector<T> all(count);
    read(all.data(), count * sizeof(T), offset * sizeof(T));
    return all;
  }

 private:
  std::uint64_t address_ = 0;
  std::size_t size_ = 0;
};
template <class T> Memory memory_of(const std::vector<T>& values) {
  Memory memory(values.size() * sizeof(T));
  memory.write(values.data(), values.size() * sizeof(T));
  return memory;
}

/// A stream that this object owns.
class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();
  Run run() const { return {stream_}; }

 private:
  void* stream_ = nullptr;
};

/// Enqueues on the stream: a copy, or filling memory with one byte value.
void copy(void* to, const void* from, std::size_t bytes, const Run& run = {});
void fill(void* to, std::uint8_t byte, std::size_t bytes, const Run& run = {});
/// Writes every byte once, 16 at a time: the baseline for computing a table. bytes is a multiple of 16 KiB.
void write_all(void* to, std::size_t bytes, const Run& run = {});
/// Reads every byte once: the baseline for decoding. bytes is a multiple of 16 KiB.
void read_all(const void* from, std::size_t bytes, const Run& run = {});

/// Milliseconds between two events around the work that `work` enqueues on the stream.
/// `alone`: the work is queued behind a kernel that waits, so that the host's launch overhead is not measured.
double time_once(FunctionRef<void()> work, const Run& run = {}, bool alone = false);
/// Milliseconds per round of work, for `launches` rounds captured as one CUDA graph and launched at once.
double time_in_graph(FunctionRef<void(const Run&)> work, int launches);

/// What the driver's assembler reports for every kernel: registers, stack, spills and warnings, one line per kernel.
struct KernelReport {
  std::string kernel, log;
};
std::vector<KernelReport> assemble_all();

}  // namespace posenc::cuda
