#pragma once

// Shared by the passes of attention on a GPU: what the kernels for compute capability 9.0 support, and tensors and
// positions in the form they need.

#include <string>
#include <vector>

#include "attention/cuda/params.h"
#include "attention/job.h"
#include "attention/plan/call.h"
#include "kernels/cuda/call.h"
#include "posenc/positions.h"

namespace posenc::attend::cuda {

using kernels::cuda::Call;
using kernels::cuda::TensorMap;

/// Of the current GPU: 90 means compute capability 9.0.
int capability();
int multiprocessors();

/// What attention_sm90 requires and these arguments lack, in words ("f16 or bf16"); "" if it supports the call.
std::string beyond_hopper(const AttentionJob& job, const AttentionCall& options);
/// The sizes that attention_sm90 and attention_backward_sm90 are compiled for: features of q and k, and of v.
struct HopperSize {
  int features, values;
};
constexpr HopperSize kHopperSizes[] = {{64, 64}, {128, 128}, {192, 128}, {256, 256}};
/// An index in kHopperSizes; −1 if the size is not there.
constexpr int hopper_size_of(std::int64_t features, std::int64_t values) {
  for (int n = 0; n < 4; ++n) {
    if (kHopperSizes[n].features == features && kHopperSizes[n].values == values) return n;
  }
  return -1;
}
/// Whether features are contiguous and rows 16-byte aligned.
template <class Void> bool has_whole_rows(const HeadTensor<Void>& x) {
  return reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && x.feature_stride == 1 && x.token_stride % 8 == 0 &&
         x.head_stride % 8 == 0 && x.batch_stride % 8 == 0 && x.token_stride > 0 && x.head_stride >= 0 &&
         x.batch_stride >= 0;
}

/// A tensor as the copy engine sees it, in boxes of the given number of rows.
TensorMap map_of(const HeadTensor<const void>& x, int rows);

/// The pairs that attend to each other. Only for calls that the kernels support.
Band band_of(const AttentionJob& job, const AttentionCall& options);

/// Of packed sequences: the blocks of `size` rows (of keys) with the most work first, and the tiles of queries in order.
std::vector<PackedBlock> packed_blocks(const AttentionCall& options, const Band& band, bool of_keys, int size);
std::vector<PackedTile> packed_tiles(const AttentionCall& options);
/// For the kernels of this call; null if there are none.
template <class Item> const Item* on_gpu(Call& call, const std::vector<Item>& items) {
  return items.empty() ? nullptr : static_cast<const Item*>(call.copied(items.data(), items.size() * sizeof(Item)));
}

/// The position's part: which kernel, and its bias.
struct PositionParts {
  BiasKind kind = kNoBias;
  const float* bias = nullptr;
  bool both = false;  // at distances below 0, too
  bool packed = false;

  /// Which of the kernels, as an index in kVariantNames.
  std::size_t variant() const { return packed ? 6U + kind : static_cast<std::size_t>(kind) + (both ? 3U : 0U); }
};
constexpr std::string_view kVariantNames[] = {"none",
                                              "slopes",
                                              "distances",
                                              "rotation",
                                              "slopes_both",
                                              "distances_both",
                                              "none_packed",
                                              "slopes_both_packed",
                                              "distances_both_packed"};
constexpr std::size_t kVariants = std::size(kVariantNames);
/// For more than 128 features, and for packed sequences, there are only kernels for both sides: they lose little on one.
PositionParts parts_of(Call& call, const AttentionJob& job, const AttentionCall& options, const Band& band);

/// Two zeroed counters for one launch, and as many zeros from kZerosAfter bytes on.
constexpr std::size_t kZerosAfter = 16;
int* zero_counters(Call& call, std::size_t more_bytes = 0);

/// Checked positions as rotate takes them, for a tensor of tokens at them.
Positions positions_in(const TokenPositions& at, const ConstTensorView& x);

/// q and k, rotated into memory that the call borrows if the position is a rotation, and the scale.
struct QueriesAndKeys {
  HeadTensor<const void> q, k;
  double scale = 1;
};
QueriesAndKeys ready_of(Call& call, const AttentionJob& job, const AttentionInputs& inputs,
                        const AttentionCall& options);

}  // namespace posenc::attend::cuda
