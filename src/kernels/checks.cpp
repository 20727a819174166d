#include "kernels/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "posenc/error.h"

namespace posenc::kernels {

std::int64_t check_tensor(std::string_view verb, std::string_view what, const ConstTensorView& view, int least_rank,
                          int most_rank, std::string_view axes) {
  if (view.shape.rank < least_rank || view.shape.rank > most_rank) {
    raise(fmt::format("{}: {} must have {}, but has {}", verb, what, axes, view.shape.rank));
  }
  if (view.strides.rank != view.shape.rank) {
    raise(fmt::format("{}: {} has {} axes but {} strides", verb, what, view.shape.rank, view.strides.rank));
  }
  const std::int64_t count = count_of(view.shape);
  if (count < 0) raise(fmt::format("{}: {} has an impossible shape {}", verb, what, to_string(view.shape)));
  if (count > 0 && view.data == nullptr) raise(fmt::format("{}: {} has no data", verb, what));
  if (view.type == DataType::kI64 || view.type == DataType::kBool) {
    raise(fmt::format("{}: {} must be f32, f64, f16 or bf16 but is {}", verb, what, name_of(view.type)));
  }
  return count;
}

void check_writable(std::string_view verb, std::string_view what, const TensorView& view) {
  if (count_of(view.shape) == 0) return;
  for (int axis = 0; axis < view.shape.rank; ++axis) {
    if (view.shape[axis] > 1 && view.strides[axis] == 0) {
      raise(fmt::format("{}: {} cannot be written: axis {} has stride 0", verb, what, axis));
    }
  }
}

namespace {

// The bytes that a view may touch: [first, second).
struct Bytes {
  std::uintptr_t first, second;
};
Bytes bytes_of(const ConstTensorView& view) {
  std::int64_t low = 0, high = 0;
  for (int axis = 0; axis < view.shape.rank; ++axis) {
    const std::int64_t reach = (view.shape[axis] - 1) * view.strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const auto start = reinterpret_cast<std::uintptr_t>(view.data);
  const std::int64_t size = size_of(view.type);
  return {start + static_cast<std::uintptr_t>(low * size), start + static_cast<std::uintptr_t>((high + 1) * size)};
}

}  // namespace

bool may_overlap(const ConstTensorView& one, const ConstTensorView& other) {
  const Bytes a = bytes_of(one), b = bytes_of(other);
  return a.first < b.second && b.first < a.second;
}

void check_same_shape(std::string_view verb, const TensorView& out, const ConstTensorView& x) {
  if (out.shape == x.shape) return;
  raise(fmt::format("{}: out has shape {} but x has {}", verb, to_string(out.shape), to_string(x.shape)));
}

void check_same_or_apart(std::string_view verb, const TensorView& out, const ConstTensorView& x) {
  if (count_of(x.shape) == 0 || (out.data == x.data && out.strides == x.strides && out.type == x.type)) return;
  if (may_overlap(out, x)) raise(fmt::format("{}: out overlaps x without being x", verb));
}

Site site_of(std::string_view verb, std::initializer_list<ConstTensorView> views, const Positions& positions,
             const Run& run) {
  Site site;
  bool first = true;
  for (const ConstTensorView& view : views) {
    if (view.data == nullptr) continue;
    if (!first && view.device != site.device) {
      raise(fmt::format("{}: one tensor is on {} but another is on {}", verb, name_of(site.device),
                        name_of(view.device)));
    }
    site.device = view.device;
    first = false;
  }
  if (!positions.ids.empty() && positions.device != Device::kHost && positions.device != site.device) {
    raise(fmt::format("{}: the position ids are on {} but the tensors are on {}", verb, name_of(positions.device),
                      name_of(site.device)));
  }
  if (!positions.ids_i32.empty() && (positions.device != Device::kHost || site.device != Device::kHost)) {
    raise(fmt::format("{}: position ids on a GPU must be i64, not i32", verb));
  }
  if (site.device != Device::kHost) site.stream = run.stream;
  return site;
}

void check_position(std::string_view verb, std::int64_t position, const RowLimit& limit) {
  if (position < (limit.is_signed ? 1 - kPositionLimit : 0) || position >= kPositionLimit) {
    raise(fmt::format("{}: position {} is outside {} to 2^53 - 1", verb, position,
                      limit.is_signed ? "-2^53 + 1" : "0"));
  }
  if (limit.rows < 0 || position + limit.offset < limit.rows) return;
  raise(fmt::format("{}: position {} is past the table: {} rows with offset {} end at position {}", verb, position,
                    limit.rows, limit.offset, limit.rows - limit.offset - 1));
}

TokenPositions positions_of(std::string_view verb, const Positions& positions, int axes, const Tokens& x,
                            const RowLimit& limit) {
  if (positions.axes != axes) {
    raise(fmt::format("{}: the form has {} position axes but the positions have {}", verb, axes, positions.axes));
  }
  TokenPositions checked;
  checked.axes = axes;
  if (positions.ids.empty() && positions.ids_i32.empty()) {
    checked.first = positions.first;
    if (x.batch * x.sequence > 0) {
      check_position(verb, positions.first, limit);
      // first + sequence cannot overflow: both are below 2^62
      check_position(verb, positions.first + std::min(x.sequence, kPositionLimit) - 1, limit);
    }
    return checked;
  }
  if (!positions.ids.empty() && !positions.ids_i32.empty()) {
    raise(fmt::format("{}: positions have both ids and ids_i32; give only one of them", verb));
  }
  const bool is_narrow = positions.ids.empty();
  const auto count = static_cast<std::int64_t>(is_narrow ? positions.ids_i32.size() : positions.ids.size());
  const bool shared = count == axes * x.sequence;
  if (!shared && count != axes * x.batch * x.sequence) {
    raise(fmt::format("{}: {} position ids do not fit {} sequences of {} tokens and {} axes", verb, count, x.batch,
                      x.sequence, axes));
  }
  if (positions.device == Device::kHost) {
    for (const std::int64_t id : positions.ids) check_position(verb, id, limit);
    for (const std::int32_t id : positions.ids_i32) check_position(verb, id, limit);
  } else {
    checked.on_device = true;
    if (limit.rows >= 0)
      checked.limit = std::min(checked.limit, std::max<std::int64_t>(0, limit.rows - limit.offset));
  }
  if (is_narrow) {
    checked.narrow_ids = positions.ids_i32.data();
  } else {
    checked.ids = positions.ids.data();
  }
  checked.count = count;
  checked.batch_stride = shared ? 0 : x.sequence;
  checked.axis_stride = count / axes;
  return checked;
}

}  // namespace posenc::kernels
