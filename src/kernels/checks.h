#pragma once

#include <initializer_list>
#include <string_view>

#include "forms/checks.h"
#include "kernels/job.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc::kernels {

// The checks that the verbs share. Each throws an Error that begins with the verb.

/// [..., sequence, width].
template <class Void>
TokenTensor<Void> tokens_of(std::string_view verb, std::string_view what, const BasicTensorView<Void>& view) {
  const std::int64_t count =
      check_tensor(verb, what, view, 2, Extents::kMax, "2 to 8 axes, the last two sequence and width");
  TokenTensor<Void> tokens;
  tokens.data = view.data;
  tokens.type = view.type;
  for (int axis = 0; axis < view.shape.rank - 2; ++axis) {
    tokens.lead_shape.push_back(view.shape[axis]);
    tokens.lead_strides.push_back(view.strides[axis]);
    // An empty tensor may have extents whose product overflows; none of its elements is visited.
    if (count > 0) tokens.batch *= view.shape[axis];
  }
  tokens.sequence = count > 0 ? view.shape.back(1) : 0;
  tokens.width = view.shape.back(0);
  tokens.token_stride = view.strides.back(1);
  tokens.column_stride = view.strides.back(0);
  return tokens;
}

/// [batch, heads, sequence, features]; leading axes may be absent.
template <class Void> HeadTensor<Void> heads_of(std::string_view verb, std::string_view what,
                                                const BasicTensorView<Void>& view, Types types = Types::kOfNumbers) {
  const std::int64_t count =
      check_tensor(verb, what, view, 2, 4, "2 to 4 axes, batch, heads, sequence, features", types);
  HeadTensor<Void> heads;
  heads.data = view.data;
  heads.type = view.type;
  const int rank = view.shape.rank;
  if (rank > 3) heads.batch = view.shape[0], heads.batch_stride = view.strides[0];
  if (rank > 2) heads.heads = view.shape.back(2), heads.head_stride = view.strides.back(2);
  heads.sequence = view.shape.back(1);
  heads.features = view.shape.back(0);
  heads.token_stride = view.strides.back(1);
  heads.feature_stride = view.strides.back(0);
  const std::int64_t block = elements_of_block(view.type);
  heads.batch_stride /= block, heads.head_stride /= block, heads.token_stride /= block;
  if (count == 0) heads.batch = heads.heads = heads.sequence = 0;
  return heads;
}

/// What multiplies the elements of an 8-bit cache, by head.
struct Scales {
  const float* first = nullptr;  // null: 1
  std::int64_t stride = 0;       // 0: the same for every head

  float of(std::int64_t head) const noexcept { return first == nullptr ? 1.0f : first[head * stride]; }
};
/// Checks a scale that was given for a cache: one number, or one for each of its heads.
Scales scales_of(std::string_view verb, std::string_view what, const ConstTensorView& scale, DataType type,
                 std::int64_t heads);

void check_writable(std::string_view verb, std::string_view what, const TensorView& view);
void check_same_shape(std::string_view verb, const TensorView& out, const ConstTensorView& x);
/// Whether any element of one view shares a byte with one of the other; neither is empty.
bool do_overlap(const ConstTensorView& one, const ConstTensorView& other);
/// Checks that out is x, or that they share no byte.
void check_same_or_apart(std::string_view verb, const TensorView& out, const ConstTensorView& x);

/// Checks that all are on one device, and the ids there or on the host. Views without data are skipped.
Site site_of(std::string_view verb, std::initializer_list<ConstTensorView> views, const Positions& positions,
             const Run& run);

/// The rows that a position may refer to, for forms that read a table.
struct RowLimit {
  std::int64_t rows = -1;  // none
  std::int64_t offset = 0;
  bool is_signed = false;  // positions may be negative: they are angles or distances, not rows
};
/// The number of tokens that need positions.
struct Tokens {
  std::int64_t batch, sequence;
};
/// Checks 0 ≤ position < 2^53, or |position| < 2^53 if they may be negative, and that the table has the row.
void check_position(std::string_view verb, std::int64_t position, const RowLimit& limit);
TokenPositions positions_of(std::string_view verb, const Positions& positions, int axes, const Tokens& tokens,
                            const RowLimit& limit);

/// Positions for a rotation. If it has several axes and the positions are consecutive, all axes get the same (text).
TokenPositions rotary_positions_of(std::string_view verb, const Positions& positions, const Rotation& form,
                                   const Tokens& tokens);

/// The positions of a tensor that a form rotates. Checks positions, form and tensor as rotate does.
TokenPositions rotated_positions_of(std::string_view verb, const Positions& positions, const Rotation& form,
                                    const HeadTensor<const void>& x);

/// The first feature that a form rotates in the heads of x. Checks that they have the features and the heads for it.
std::int64_t first_rotated(std::string_view verb, std::string_view what, const Rotation& form,
                           const HeadTensor<const void>& x);
/// For verbs that write a cache, whose tokens are in any order: rejects a table with one row per token.
void check_no_rows_of_tokens(std::string_view verb, const Rotation& form);

/// rotate(out, x) for a verb that has checked the positions; errors begin with that verb. The form's table is on the
/// host if the tensors are; for tensors elsewhere, it has one row for all tokens.
void rotate_for(std::string_view verb, const Backend& backend, const TensorView& out, const ConstTensorView& x,
                const TokenPositions& positions, const Rotation& form, const Site& site = {});

}  // namespace posenc::kernels
