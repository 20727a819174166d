#include "forms/checks.h"

#include <fmt/format.h>

#include "posenc/error.h"

namespace posenc {

namespace {

bool is_taken(DataType type, Types types) {
  switch (type) {
    case DataType::kF32:
    case DataType::kF64:
    case DataType::kF16:
    case DataType::kBF16:
      return true;
    case DataType::kE4M3:
    case DataType::kQ8_0:
      return types == Types::kOfCache;
    case DataType::kI64:
    case DataType::kBool:
      return false;
  }
  return false;  // a number that is no type
}

// Of a type whose elements are stored in blocks.
void check_blocks(std::string_view verb, std::string_view what, const ConstTensorView& view) {
  const std::int64_t block = elements_of_block(view.type);
  if (block == 1) return;
  const int last = view.shape.rank - 1;
  bool is_whole = view.shape[last] % block == 0 && (view.shape[last] <= 1 || view.strides[last] == 1);
  for (int axis = 0; axis < last; ++axis) is_whole = is_whole && view.strides[axis] % block == 0;
  if (!is_whole) {
    raise(fmt::format(
        "{}: {} of {} must consist of blocks of {} elements of a contiguous last axis, but has shape {} and "
        "strides {}",
        verb, what, name_of(view.type), block, to_string(view.shape), to_string(view.strides)));
  }
  if (reinterpret_cast<std::uintptr_t>(view.data) % alignof(Q8Block) != 0) {
    raise(fmt::format("{}: {} of {} must be at an even address", verb, what, name_of(view.type)));
  }
}

}  // namespace

void check_reach(std::string_view verb, std::string_view what, const ConstTensorView& view) {
  if (view.device != Device::kHost && view.device != Device::kCuda) {
    raise(fmt::format("{}: {} is on a device with the number {}, which is none", verb, what,
                      static_cast<int>(view.device)));
  }
  std::int64_t reach = 0;  // in bytes, of all axes together; room for sums of two tensors' is left
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  for (int axis = 0; axis < view.shape.rank; ++axis) {
    const std::int64_t steps = view.shape[axis] - 1, stride = view.strides[axis];
    std::int64_t bytes = 0;
    if (steps < 1) continue;
    if (stride < -kMost || stride > kMost || __builtin_mul_overflow(steps, stride < 0 ? -stride : stride, &bytes) ||
        __builtin_mul_overflow(bytes, size_of(view.type), &bytes) || bytes > kMost - reach) {
      raise(fmt::format("{}: {} has strides past the end of memory: shape {}, strides {}", verb, what,
                        to_string(view.shape), to_string(view.strides)));
    }
    reach += bytes;
  }
}

std::int64_t check_tensor(std::string_view verb, std::string_view what, const ConstTensorView& view, int least_rank,
                          int most_rank, std::string_view axes, Types types) {
  if (view.shape.rank < least_rank || view.shape.rank > most_rank) {
    raise(fmt::format("{}: {} must have {}, but has {}", verb, what, axes, view.shape.rank));
  }
  if (view.strides.rank != view.shape.rank) {
    raise(fmt::format("{}: {} has {} axes but {} strides", verb, what, view.shape.rank, view.strides.rank));
  }
  const std::int64_t count = count_of(view.shape);
  if (count < 0) raise(fmt::format("{}: {} has an impossible shape {}", verb, what, to_string(view.shape)));
  if (count > 0 && view.data == nullptr) raise(fmt::format("{}: {} has no data", verb, what));
  if (!is_taken(view.type, types)) {
    raise(fmt::format("{}: {} must be f32, f64, f16{} but is {}", verb, what,
                      types == Types::kOfCache ? ", bf16, e4m3 or q8_0" : " or bf16", name_of(view.type)));
  }
  check_blocks(verb, what, view);
  if (count > 0) check_reach(verb, what, view);
  return count;
}

void replace_table(ConstTensorView& table, const ConstTensorView& given, std::string_view what) {
  if (table.data == nullptr) raise(fmt::format("bind: the form reads no {}", what));
  if (given.data == nullptr || given.shape != table.shape || given.strides.rank != given.shape.rank) {
    raise(
        fmt::format("bind: {} of shape {} cannot replace {}", what, to_string(given.shape), to_string(table.shape)));
  }
  table = given;
}

void check_head_slice(std::int64_t first, std::int64_t count, std::int64_t heads) {
  if (first < 0 || count < 1 || (heads > 0 && (first >= heads || count > heads - first))) {
    raise(fmt::format("slice_heads: heads from {}, {} of them, of a form with {}", first, count,
                      heads > 0 ? fmt::format("{} heads", heads) : "any number of heads"));
  }
}

}  // namespace posenc
