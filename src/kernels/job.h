#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "forms/tokens.h"
#include "posenc/forms.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc::kernels {

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
    /// [batch, sequence], on the host: out is a cache, [pages, heads, page size, features], and token t goes to slot
    /// slots[t]; if that is negative, nowhere.
    const std::int64_t* slots = nullptr;

    std::int64_t slot(std::int64_t b, std::int64_t t) const noexcept { return slots[b * x.sequence + t]; }
  };
  std::array<Part, 2> parts;
  int count = 1;  // of the parts
  TokenPositions positions;
  const Rotation* form = nullptr;
  Site site;
};

/// Slots of a cache, one for each token. On the device they have not been checked; otherwise they are in range.
struct SlotList {
  const std::int64_t* ids = nullptr;
  const std::int32_t* narrow_ids = nullptr;  // in place of ids
  std::int64_t tokens = 0;                   // number of ids
  std::int64_t limit = 0;                    // slots of the cache
  bool on_device = false;

  bool is_given() const noexcept { return ids != nullptr || narrow_ids != nullptr; }
};
/// An RMS norm: x / √(mean of squares + epsilon) · (weight + offset).
struct Norm {
  ConstTensorView weight;  // [features], or [heads, features] for a mean over all heads; without data: no norm
  double epsilon = 0, offset = 0;
};
/// Tokens on their way into a cache, or within it: normalised, rotated, and written.
struct SlotJob {
  struct Part {
    HeadTensor<void> out;
    HeadTensor<const void> x;
    bool to_slots = false, from_slots = false;  // out or x is a cache: [pages, heads, page size, features]
    bool rotates = false;
    std::int64_t first = 0;  // the first rotated feature
    bool keys = false;       // growth is reversed
    Norm norm = {};
  };
  std::array<Part, 3> parts;
  int count = 1;  // of the parts
  std::int64_t batch = 1, sequence = 0;
  SlotList slots;
  SlotList sources;  // if given: tokens are read from these slots, all of them before any is written
  TokenPositions positions;
  const Rotation* form = nullptr;  // null: nothing is rotated
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
  void (*write_slots)(const SlotJob&) = nullptr;  // for tensors on a GPU; on the host, verbs use the functions above
  bool rotates_to_slots = true;                   // whether rotate takes a part with slots
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
