#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "posenc/types.h"

namespace posenc {

/// Where a tensor's memory is. `kCuda`: on the GPU whose context is current in this thread, otherwise on the first GPU.
enum class Device : std::uint8_t { kHost, kCuda };

/// "host", "cuda".
std::string_view name_of(Device device) noexcept;

/// A thread pool provided by the caller, used instead of the library's own threads.
struct Pool {
  /// Calls item(data, i) for every i from 0 to count − 1, in any order, on at most Run::threads threads at once (the
  /// calling one may be among them), and returns when all are done.
  void (*run)(void* context, std::int64_t count, void (*item)(void* data, std::int64_t i), void* data) = nullptr;
  void* context = nullptr;
};

/// How to run a call: stream, threads and memory. On a GPU, the work is only enqueued on the stream: the call returns
/// before it is done, without waiting (see synchronize in backend.h).
struct Run {
  void* stream = nullptr;  ///< a CUstream or cudaStream_t; null: the default stream. Ignored for tensors on the host
  int threads = 0;  ///< threads of this call, for tensors on the host; 0: as many as threads() returns (backend.h)
  /// For attention with a plan, on the host: at least workspace_bytes(plan, threads) bytes, so that the call allocates
  /// nothing. For attention and its gradients on a GPU: GPU memory (see workspace_bytes in attention.h).
  std::span<std::byte> workspace = {};
  Pool pool = {};  ///< for tensors on the host; unset: the library's own threads
};

/// A short list of extents or strides, outermost first; at most 8.
struct Extents {
  static constexpr int kMax = 8;
  std::array<std::int64_t, kMax> value{};
  int rank = 0;

  constexpr Extents() = default;
  constexpr Extents(std::initializer_list<std::int64_t> list) {
    for (const std::int64_t extent : list) push_back(extent);
  }
  /// An extent past the eighth is counted in `rank` but not stored; every verb rejects such a rank.
  constexpr void push_back(std::int64_t extent) {
    if (rank < kMax) value[static_cast<std::size_t>(rank)] = extent;
    ++rank;
  }
  constexpr std::int64_t operator[](int axis) const { return value[static_cast<std::size_t>(axis)]; }
  constexpr std::int64_t& operator[](int axis) { return value[static_cast<std::size_t>(axis)]; }
  /// Counted from the end: back(0) is the innermost.
  constexpr std::int64_t back(int steps) const { return (*this)[rank - 1 - steps]; }
  bool operator==(const Extents&) const = default;
};

/// The strides, in elements, of a dense array of this shape; the last axis is contiguous.
Extents dense_strides(const Extents& shape) noexcept;
/// The number of elements, or −1 if it does not fit in 63 bits or an extent is negative.
std::int64_t count_of(const Extents& shape) noexcept;
/// "[8, 4096, 1024]".
std::string to_string(const Extents& shape);

/// A view of a tensor in the caller's memory: pointer, type, device, shape, strides (in elements). It owns nothing.
template <class Void> struct BasicTensorView {
  Void* data = nullptr;
  DataType type = DataType::kF32;
  Extents shape;
  Extents strides;
  Device device = Device::kHost;

  BasicTensorView() = default;
  BasicTensorView(Void* where, DataType what, const Extents& extents)
      : data(where), type(what), shape(extents), strides(dense_strides(extents)) {}
  BasicTensorView(Void* where, DataType what, const Extents& extents, const Extents& steps)
      : data(where), type(what), shape(extents), strides(steps) {}
  /// A writable view converts to a read-only one.
  operator BasicTensorView<const void>() const {
    BasicTensorView<const void> readable{data, type, shape, strides};
    readable.device = device;
    return readable;
  }
};
using TensorView = BasicTensorView<void>;
using ConstTensorView = BasicTensorView<const void>;

/// A dense view of an array: view(x, {batch, sequence, width}).
template <class T> TensorView view(T* data, const Extents& shape) { return {data, data_type_of<T>(), shape}; }
template <class T> ConstTensorView view(const T* data, const Extents& shape) {
  return {data, data_type_of<T>(), shape};
}

/// The same tensor, in memory of that device.
template <class Void> BasicTensorView<Void> on(Device device, BasicTensorView<Void> x) {
  x.device = device;
  return x;
}

/// Throws: Error that names the verb and an axis that a tensor of this shape does not have.
[[noreturn]] void refuse_axis(std::string_view verb, int axis, const Extents& shape);

/// The same tensor with two axes exchanged: swap_axes(view(q, {batch, sequence, heads, features}), 1, 2).
/// Throws: Error for an axis that the tensor does not have.
template <class Void> BasicTensorView<Void> swap_axes(BasicTensorView<Void> x, int one, int other) {
  for (const int axis : {one, other}) {
    if (axis < 0 || axis >= x.shape.rank || axis >= Extents::kMax) refuse_axis("swap_axes", axis, x.shape);
  }
  std::swap(x.shape[one], x.shape[other]);
  std::swap(x.strides[one], x.strides[other]);
  return x;
}

/// `count` entries of an axis, starting at entry `first`: slice(k_cache, 0, page, 1) is one page.
/// Throws: Error for an axis that the tensor does not have, and for a range past the end of the axis.
TensorView slice(const TensorView& x, int axis, std::int64_t first, std::int64_t count);
ConstTensorView slice(const ConstTensorView& x, int axis, std::int64_t first, std::int64_t count);

/// The order of a tensor's axes: b batch, h heads, s the tokens of a sequence, t the tokens of all sequences packed
/// together, d features. By default, functions expect heads before tokens; for another order, pass one of these.
enum class Axes : std::uint8_t {
  kSd,
  kHsd,
  kShd,
  kBhsd,
  kBshd,        ///< as in PyTorch and most engines before the heads are transposed to the front
  kThd = kShd,  ///< packed sequences, as in vLLM and FlashAttention
};
/// "sd", "hsd", "shd", "bhsd", "bshd".
std::string_view name_of(Axes axes) noexcept;
/// Whether it is one of these, and not another number.
constexpr bool is_known(Axes axes) noexcept { return axes <= Axes::kBshd; }
/// Whether heads come after the tokens.
constexpr bool has_heads_last(Axes axes) noexcept { return axes == Axes::kShd || axes == Axes::kBshd; }
constexpr int rank_of(Axes axes) noexcept {
  return axes == Axes::kSd ? 2 : axes == Axes::kHsd || axes == Axes::kShd ? 3 : 4;
}

/// The same tensor with heads before tokens: heads_first(view(q, {tokens, heads, features}), Axes::kThd).
/// Throws: Error for a tensor whose number of axes does not match, and for an order that is none of these.
TensorView heads_first(const TensorView& x, Axes axes);
ConstTensorView heads_first(const ConstTensorView& x, Axes axes);

}  // namespace posenc
