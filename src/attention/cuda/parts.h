#pragma once

// What the passes of attention on a GPU share: what the kernels for compute capability 9.0 can do, and tensors and
// positions as they want them.

#include <string>

#include "attention/cuda/params.h"
#include "attention/job.h"
#include "kernels/cuda/call.h"
#include "posenc/positions.h"

namespace posenc::attend::cuda {

using kernels::cuda::Call;
using kernels::cuda::TensorMap;

/// Of the current GPU: 90 for compute capability 9.0.
int capability();
int multiprocessors();

/// What attention_sm90 and its backward are for but these arguments are not, in words ("causal attention"); "" where
/// they can do it.
std::string beyond_hopper(const AttentionJob& job, const AttentionOptions& options);
/// Whether features lie side by side and rows begin at multiples of 16 bytes.
template <class Void> bool has_whole_rows(const HeadTensor<Void>& x) {
  return reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && x.feature_stride == 1 && x.token_stride % 8 == 0 &&
         x.head_stride % 8 == 0 && x.batch_stride % 8 == 0 && x.token_stride > 0 && x.head_stride >= 0 &&
         x.batch_stride >= 0;
}

/// A tensor as the copy engine sees it, in boxes of so many rows.
TensorMap map_of(const HeadTensor<const void>& x, int rows);

/// The position's part: which kernel, and its bias.
struct PositionParts {
  BiasKind kind = kNoBias;
  const float* bias = nullptr;
  std::int32_t tail = 0;
};
PositionParts parts_of(Call& call, const Bias& form, const AttentionJob& job);

/// Two counters of zero, for one launch, and as many zeros from kZerosAfter bytes on.
constexpr std::size_t kZerosAfter = 16;
int* zero_counters(Call& call, std::size_t more_bytes = 0);

/// Checked positions as rotate takes them, for a tensor of tokens at them.
Positions positions_in(const TokenPositions& at, const ConstTensorView& x);

/// q and k, rotated into memory that the call borrows where the position is a rotation, and its scale.
struct QueriesAndKeys {
  HeadTensor<const void> q, k;
  double scale = 1;
};
QueriesAndKeys ready_of(Call& call, const AttentionJob& job, const AttentionInputs& inputs,
                        const AttentionOptions& options);

}  // namespace posenc::attend::cuda
