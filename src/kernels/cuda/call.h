#pragma once

// One call of a verb on the GPU: its tensors, tables and numbers in the form that kernels take. Tensors on the GPU
// are used in place. Those on the host are copied there whole and, if written, copied back by finish(); if they do not
// fit into the GPU's memory, the call is refused.

#include <span>
#include <type_traits>
#include <vector>

#include "kernels/cuda/module.h"
#include "kernels/cuda/params.h"
#include "kernels/job.h"

namespace posenc::kernels::cuda {

class Call {
 public:
  explicit Call(const Site& site);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  TokenParams tokens(const TokenTensor<void>& x);
  TokenParams tokens(const TokenTensor<const void>& x);
  HeadParams heads(const HeadTensor<void>& x);
  HeadParams heads(const HeadTensor<const void>& x);
  /// [rows, columns] or [batch, rows, columns].
  TableParams table(const ConstTensorView& view);
  /// The tensor on the GPU. Copied back if it is writable.
  template <class Void> BasicTensorView<Void> on_gpu(BasicTensorView<Void> x) {
    if (x.data == nullptr) return x;
    x.data = place(x.data, x.shape, x.strides, x.type, !std::is_const_v<Void>);
    x.device = Device::kCuda;
    return x;
  }
  PositionParams positions(const TokenPositions& positions);
  /// 32-bit slots must be on the GPU.
  SlotParams slots(const SlotList& list);
  WaveParams waves(std::span<const Frequency> frequencies, std::span<const std::uint8_t> axes,
                   const Float32Angles& angles, double scale);
  /// A copy of numbers that belong to the form; null for none. It is kept for the next call with the same numbers.
  template <class T> const T* numbers(std::span<const T> values) {
    return static_cast<const T*>(bytes(values.data(), values.size_bytes()));
  }
  /// GPU memory for the duration of the call, ordered on the stream. Only for tensors on the GPU.
  void* borrow(std::size_t size);
  /// The same, filled with a copy of numbers on the host.
  const void* copied(const void* data, std::size_t size);
  Context context() const { return context_; }
  /// Changes when the kept copies are freed.
  std::uint64_t generation() const;
  Fault* fault() const;
  void* stream() const { return site_.stream; }

  /// For tensors on the host: waits, copies back what was written, and reports what kernels found. Otherwise the work
  /// is only enqueued, and synchronize reports it.
  Outcome finish();

 private:
  struct Copy {
    char* host;  // the lowest address
    std::size_t size;
    Address device;
    std::int64_t before;  // bytes before the element with index 0
    bool written;
    Extents shape, strides;
    std::size_t element;
  };
  void take_back(const Copy& copy) const;
  void* place(const void* data, const Extents& shape, const Extents& strides, DataType type, bool written);
  const void* bytes(const void* data, std::size_t size);

  Site site_;
  Context context_ = nullptr;
  std::vector<Copy> copies_;
  std::vector<Address> borrowed_;  // for the duration of the call, ordered on the stream
};

/// While it lives, calls of this thread borrow from GPU memory given by the caller, one after another; without it,
/// from the driver's pool.
class UseWorkspace {
 public:
  /// Empty: the driver's pool, as before.
  explicit UseWorkspace(std::span<std::byte> memory);
  ~UseWorkspace();
  UseWorkspace(const UseWorkspace&) = delete;
  UseWorkspace& operator=(const UseWorkspace&) = delete;

 private:
  friend class MeasureWorkspace;
  struct Room {
    std::byte* data = nullptr;
    std::size_t size = 0, used = 0;
    bool is_measured = false;
  };
  friend class Call;
  friend bool is_measuring();
  static Room*& current();
  Room room_;
  Room* before_;
};
/// While it lives, calls of this thread do nothing on the GPU but count what they would borrow.
class MeasureWorkspace {
 public:
  MeasureWorkspace() : use_({}) {
    use_.room_.is_measured = true;
    UseWorkspace::current() = &use_.room_;
  }
  std::size_t bytes() const { return use_.room_.used; }

 private:
  UseWorkspace use_;
};
/// Whether one is counting. Code that enqueues work without launch() must check this first.
bool is_measuring();

/// rotate for one tensor on the GPU that also writes the cosines and sines of its first sequence to `made`, as
/// attention_sm90 reads them: [tokens, 2 · pairs]. If the fast kernel for exact angles does not apply, returns false
/// and does nothing. For compute capability 9.0.
bool rotate_and_keep(Call& call, const RotateJob& job, float* made);

/// The number of blocks that keeps the GPU busy, given the number of threads of work; each thread takes several items
/// in turn.
LaunchShape spread(std::int64_t work, unsigned threads = 256);

}  // namespace posenc::kernels::cuda
