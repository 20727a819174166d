#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc::kernels {

/// [..., sequence, width] as kernels traverse it: `batch` sequences (all leading axes in one), tokens, columns.
template <class Void> struct TokenTensor {
  Void* data = nullptr;
  DataType type = DataType::kF32;
  Extents lead_shape, lead_strides;  // the leading axes
  std::int64_t batch = 1, sequence = 0, width = 0;
  std::int64_t token_stride = 0, column_stride = 1;

  /// Elements from the start to the first token of sequence b.
  std::int64_t sequence_offset(std::int64_t b) const noexcept {
    std::int64_t offset = 0;
    for (int axis = lead_shape.rank - 1; axis >= 0; --axis) {
      offset += b % lead_shape[axis] * lead_strides[axis];
      b /= lead_shape[axis];
    }
    return offset;
  }
  template <class T> auto* token(std::int64_t b, std::int64_t t) const noexcept {
    using Element = std::conditional_t<std::is_const_v<Void>, const T, T>;
    return static_cast<Element*>(data) + sequence_offset(b) + t * token_stride;
  }
};

/// [batch, heads, sequence, features] as kernels traverse it.
template <class Void> struct HeadTensor {
  Void* data = nullptr;
  DataType type = DataType::kF32;
  std::int64_t batch = 1, heads = 1, sequence = 0, features = 0;
  std::int64_t batch_stride = 0, head_stride = 0, token_stride = 0, feature_stride = 1;
  // A paged cache: token t of sequence b is token t mod page_tokens of page pages[b · page_row + t / page_tokens],
  // and batch_stride is the stride between pages. Null: the tokens of a sequence follow each other.
  const std::int32_t* pages = nullptr;  // on the tensor's device, or on the host
  std::int64_t page_row = 0, page_tokens = 1, page_count = 0;

  /// The features of one token in one head.
  template <class T> auto* row(std::int64_t b, std::int64_t h, std::int64_t t) const noexcept {
    using Element = std::conditional_t<std::is_const_v<Void>, const T, T>;
    if (pages != nullptr) {
      const std::int64_t page = pages[b * page_row + t / page_tokens];
      return static_cast<Element*>(data) + page * batch_stride + h * head_stride + t % page_tokens * token_stride;
    }
    return static_cast<Element*>(data) + b * batch_stride + h * head_stride + t * token_stride;
  }
};

/// Positions, checked: all are in range.
struct TokenPositions {
  std::int64_t first = 0;
  const std::int64_t* ids = nullptr;  // if narrow_ids is null too: consecutive
  std::int64_t batch_stride = 0;      // 0: the same for every sequence
  std::int64_t axis_stride = 0;
  int axes = 1;
  std::int64_t count = 0;                    // number of ids
  bool on_device = false;                    // the ids are on the tensors' device, and have not been checked
  std::int64_t limit = kPositionLimit;       // no position may reach it
  const std::int32_t* narrow_ids = nullptr;  // in place of ids

  bool has_ids() const noexcept { return ids != nullptr || narrow_ids != nullptr; }
  std::int64_t at(std::int64_t b, std::int64_t t, int axis = 0) const noexcept {
    if (!has_ids()) return first + t;
    const std::int64_t index = axis * axis_stride + b * batch_stride + t;
    return narrow_ids != nullptr ? narrow_ids[index] : ids[index];
  }
};

/// The device of a job's tensors, and the stream on which it is ordered.
struct Site {
  Device device = Device::kHost;
  void* stream = nullptr;
};

/// out = position vectors (x absent), or x + position vectors.
struct AddJob {
  TokenTensor<void> out;
  const TokenTensor<const void>* x = nullptr;
  TokenPositions positions;
  const Addition* form = nullptr;
  std::uint64_t waves_number = 0;  // identifies its waves, for cuda: equal numbers mean equal waves
  Site site;
};

/// table[p + offset] += the sum of `gradient` over the tokens at p.
struct AddBackwardJob {
  TokenTensor<void> table;  // one sequence of rows
  TokenTensor<const void> gradient;
  TokenPositions positions;
  std::int64_t offset = 0;
  Site site;
};

/// out = x with its pairs rotated, for one tensor or for queries and keys.
struct RotateJob {
  struct Part {
    HeadTensor<void> out;
    HeadTensor<const void> x;  // the same shape; the same memory if done in place
    std::int64_t first = 0;    // the first rotated feature
    bool keys = false;         // growth is reversed
  };
  std::array<Part, 2> parts;
  int count = 1;  // of the parts
  TokenPositions positions;
  const Rotation* form = nullptr;
  Site site;
};

/// out[b, h, i, j] = the bias of head h between query i and key j: [batch, heads, queries, keys].
struct BiasJob {
  HeadTensor<void> out;
  TokenPositions queries, keys;
  const Bias* form = nullptr;
  Site site;
};

/// The gradients of the form's parameters, in double: slopes [heads], a table [rows, heads], or a map's
/// hidden_weights, hidden_biases, output_weights and output_biases one after another. Host backends add them to
/// `sums`; a GPU adds them to `parameters`, rounding each element once.
struct BiasBackwardJob {
  HeadTensor<const void> gradient;
  TokenPositions queries, keys;
  const Bias* form = nullptr;
  double* sums = nullptr;
  TensorView parameters;
  Site site;
};

/// Where a value could not be rounded with certainty, if anywhere.
struct Outcome {
  bool decided = true;
  std::int64_t position = 0;
  std::int64_t column = 0;
};

/// A backend: one function per verb. Arguments are checked before the call; the reference defines the results.
struct Backend {
  std::string_view name;
  Outcome (*add)(const AddJob&);
  void (*add_backward)(const AddBackwardJob&);
  Outcome (*rotate)(const RotateJob&);
  void (*bias)(const BiasJob&);
  void (*bias_backward)(const BiasBackwardJob&);
};
extern const Backend kReferenceBackend;
extern const Backend kCpuBackend;
extern const Backend kWasmBackend;

inline constexpr int kMostThreads = 1024;

/// While it lives, this thread's calls use the given number of threads on the host (Run::threads), or those of a
/// pool.
/// Throws: Error for a number that set_threads would reject.
class CallThreads {
 public:
  CallThreads(std::string_view verb, const Run& run);
  ~CallThreads();
  CallThreads(const CallThreads&) = delete;
  CallThreads& operator=(const CallThreads&) = delete;

 private:
  int before_;
  Pool pool_before_;
};
/// The pool of this thread's call; without `run` if it has none.
const Pool& pool_of_call() noexcept;

/// The GPU backend, if there is a GPU and this build supports it; else null.
const Backend* cuda_backend();

/// The backend in use for tensors on the host (select.cpp).
const Backend& selected_backend();
/// The backend for tensors on that device. Throws: Error if there is none.
const Backend& backend_for(std::string_view verb, Device device);

}  // namespace posenc::kernels
