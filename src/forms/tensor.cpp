#include "posenc/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "posenc/error.h"

namespace posenc {
namespace {

struct TypeFacts {
  std::string_view name;
  std::int64_t size;
};
// In the order of DataType.
constexpr std::array<TypeFacts, 8> kTypes = {{{"f32", 4},
                                              {"f64", 8},
                                              {"f16", 2},
                                              {"bf16", 2},
                                              {"i64", 8},
                                              {"bool", 1},
                                              {"e4m3", 1},
                                              {"q8_0", sizeof(Q8Block)}}};

// Numbers that are none of an enumeration's have no facts: those who look at them must not read past the list.
constexpr TypeFacts facts_of(DataType type) {
  const auto at = static_cast<std::size_t>(type);
  return at < kTypes.size() ? kTypes[at] : TypeFacts{"unknown", 1};
}

}  // namespace

std::string_view name_of(DataType type) noexcept { return facts_of(type).name; }

std::string_view name_of(Device device) noexcept {
  return device == Device::kHost ? "host" : device == Device::kCuda ? "cuda" : "unknown";
}

std::int64_t size_of(DataType type) noexcept { return facts_of(type).size; }

DataType data_type_from(std::string_view name) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DataType>(i);
  }
  raise(fmt::format("type must be f32, f64, f16, bf16, i64, bool, e4m3 or q8_0 but is '{}'", name));
}

std::string_view name_of(Axes axes) noexcept {
  constexpr std::string_view kNames[] = {"sd", "hsd", "shd", "bhsd", "bshd"};
  return is_known(axes) ? kNames[static_cast<std::size_t>(axes)] : "unknown";
}

void refuse_axis(std::string_view verb, int axis, const Extents& shape) {
  raise(fmt::format("{}: the tensor has {} axes, so there is no axis {}", verb, shape.rank, axis));
}

namespace {

template <class View> View with_heads_first(const View& x, Axes axes) {
  if (!is_known(axes))
    raise(fmt::format("axes: there is no order of axes with the number {}", static_cast<int>(axes)));
  if (x.shape.rank != rank_of(axes) || x.strides.rank != x.shape.rank) {
    raise(fmt::format("axes {} need a tensor of {} axes, but shape {} has {}", name_of(axes), rank_of(axes),
                      to_string(x.shape), x.shape.rank));
  }
  return has_heads_last(axes) ? swap_axes(x, x.shape.rank - 3, x.shape.rank - 2) : x;
}

template <class View> View part_of_axis(const View& x, int axis, std::int64_t first, std::int64_t count) {
  if (axis < 0 || axis >= std::min(x.shape.rank, Extents::kMax) || x.strides.rank != x.shape.rank) {
    refuse_axis("slice", axis, x.shape);
  }
  if (first < 0 || count < 0 || count > x.shape[axis] || first > x.shape[axis] - count) {
    raise(fmt::format("slice: axis {} has {} entries; {} from entry {} on are out of range", axis, x.shape[axis],
                      count, first));
  }
  View part = x;
  part.shape[axis] = count;
  const std::int64_t elements = first * x.strides[axis], block = elements_of_block(x.type);
  const bool is_cut = block > 1 && axis == x.shape.rank - 1 && count % block != 0;
  if (elements % block != 0 || is_cut) {
    raise(fmt::format("slice: {} has blocks of {} elements; {} from entry {} of axis {} on are not whole blocks",
                      name_of(x.type), block, count, first, axis));
  }
  using Byte = std::conditional_t<std::is_same_v<View, TensorView>, std::byte, const std::byte>;
  if (count > 0 && x.data != nullptr) {
    part.data = static_cast<Byte*>(x.data) + elements / block * size_of(x.type);
  }
  return part;
}

}  // namespace

TensorView slice(const TensorView& x, int axis, std::int64_t first, std::int64_t count) {
  return part_of_axis(x, axis, first, count);
}
ConstTensorView slice(const ConstTensorView& x, int axis, std::int64_t first, std::int64_t count) {
  return part_of_axis(x, axis, first, count);
}

TensorView heads_first(const TensorView& x, Axes axes) { return with_heads_first(x, axes); }
ConstTensorView heads_first(const ConstTensorView& x, Axes axes) { return with_heads_first(x, axes); }

Extents dense_strides(const Extents& shape) noexcept {
  Extents strides = shape;
  // Unsigned, because the product of absurd extents may wrap; such a shape is rejected before use.
  std::uint64_t step = 1;
  for (int axis = std::min(shape.rank, Extents::kMax) - 1; axis >= 0; --axis) {
    strides[axis] = static_cast<std::int64_t>(step);
    step *= static_cast<std::uint64_t>(shape[axis]);
  }
  return strides;
}

std::int64_t count_of(const Extents& shape) noexcept {
  std::int64_t count = 1;
  bool empty = false;
  for (int axis = 0; axis < std::min(shape.rank, Extents::kMax); ++axis) {
    if (shape[axis] < 0) return -1;
    if (shape[axis] == 0) empty = true;
    if (!empty && __builtin_mul_overflow(count, shape[axis], &count)) return -1;
  }
  return empty ? 0 : count;
}

std::string to_string(const Extents& shape) {
  std::string text = "[";
  for (int axis = 0; axis < std::min(shape.rank, Extents::kMax); ++axis) {
    text += fmt::format("{}{}", axis > 0 ? ", " : "", shape[axis]);
  }
  return text + "]";
}

}  // namespace posenc
