#pragma once

#include <cstdint>
#include <type_traits>

#include "posenc/frequency.h"
#include "posenc/tensor.h"

namespace posenc {

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

/// [batch, heads, sequence, features] as kernels traverse it. Strides are in elements, or in blocks if the type has them
/// (Q8Block).
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

}  // namespace posenc
