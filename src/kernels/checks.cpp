#include "kernels/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "posenc/error.h"

namespace posenc::kernels {

namespace {

// The bytes that a view may touch: [first, second).
struct Bytes {
  std::uintptr_t first, second;
};
Bytes bytes_of(const ConstTensorView& elements) {
  const ConstTensorView view = in_blocks(elements);
  std::int64_t low = 0, high = 0;
  for (int axis = 0; axis < view.shape.rank; ++axis) {
    const std::int64_t reach = (view.shape[axis] - 1) * view.strides[axis];
    (reach < 0 ? low : high) += reach;
  }
  const auto start = reinterpret_cast<std::uintptr_t>(view.data);
  const std::int64_t size = size_of(view.type);
  return {start + static_cast<std::uintptr_t>(low * size), start + static_cast<std::uintptr_t>((high + 1) * size)};
}

// Sums of steps, each taken 0 to `most` times: the possible distances between two elements of views.
class Distances {
 public:
  /// `steps` of either sign, 0 to `most` times.
  void add(std::int64_t step, std::int64_t most) {
    if (step == 0 || most <= 0) return;
    if (step < 0) start_ += step * most;
    const std::int64_t size = step < 0 ? -step : step;
    int at = 0;
    while (at < count_ && steps_[index(at)].size > size) ++at;
    if (at < count_ && steps_[index(at)].size == size) {
      steps_[index(at)].most += most;
      return;
    }
    std::move_backward(steps_.begin() + at, steps_.begin() + count_, steps_.begin() + count_ + 1);
    steps_[index(at)] = {size, most};
    ++count_;
  }
  /// Whether one of the sums, plus `offset`, is above `low` and below `high`. Also true if that takes too long to
  /// find out, which does not happen for views of dense arrays.
  bool has_between(std::int64_t offset, std::int64_t low, std::int64_t high) {
    left_ = 10'000;
    std::int64_t reach = 0;
    for (int at = count_ - 1; at >= 0; --at) {
      steps_[index(at)].reach_after = reach;
      reach += steps_[index(at)].size * steps_[index(at)].most;
    }
    return finds(0, low + 1 - offset - start_, high - 1 - offset - start_);
  }

 private:
  struct Step {
    std::int64_t size = 0, most = 0, reach_after = 0;
  };
  static std::size_t index(int at) { return static_cast<std::size_t>(at); }
  bool finds(int at, std::int64_t least, std::int64_t largest) {
    if (largest < 0) return false;
    if (least <= 0 || --left_ < 0) return true;
    if (at == count_) return false;
    const Step& step = steps_[index(at)];
    const std::int64_t missing = least - step.reach_after;  // to be covered by this and all larger steps
    const std::int64_t first = missing <= 0 ? 0 : (missing + step.size - 1) / step.size;
    for (std::int64_t times = first; times <= std::min(step.most, largest / step.size); ++times) {
      if (finds(at + 1, least - times * step.size, largest - times * step.size)) return true;
    }
    return false;
  }

  std::array<Step, 2 * Extents::kMax> steps_ = {};  // largest first
  int count_ = 0, left_ = 0;
  std::int64_t start_ = 0;
};

// Whether each stride exceeds the combined reach of all smaller ones: the usual case, in which no two elements
// coincide.
bool is_nested(const ConstTensorView& view) {
  const auto step_of = [&](int axis) { return view.strides[axis] < 0 ? -view.strides[axis] : view.strides[axis]; };
  for (int outer = 0; outer < view.shape.rank; ++outer) {
    std::int64_t reach = 0;
    for (int inner = 0; inner < view.shape.rank; ++inner) {
      const bool is_inner = step_of(inner) < step_of(outer) || (step_of(inner) == step_of(outer) && inner > outer);
      if (is_inner) reach += (view.shape[inner] - 1) * step_of(inner);
    }
    if (view.shape[outer] > 1 && step_of(outer) <= reach) return false;
  }
  return true;
}

// Whether two elements of a view without strides of 0 coincide.
bool meets_itself(const ConstTensorView& view) {
  if (is_nested(view)) return false;
  for (int moved = 0; moved < view.shape.rank; ++moved) {  // the first axis on which the two differ
    if (view.shape[moved] < 2) continue;
    Distances distances;
    std::int64_t offset = view.strides[moved];
    distances.add(view.strides[moved], view.shape[moved] - 2);
    for (int axis = moved + 1; axis < view.shape.rank; ++axis) {
      distances.add(view.strides[axis], 2 * (view.shape[axis] - 1));
      offset -= view.strides[axis] * (view.shape[axis] - 1);
    }
    if (distances.has_between(offset, -1, 1)) return true;
  }
  return false;
}

}  // namespace

Scales scales_of(std::string_view verb, std::string_view what, const ConstTensorView& scale, DataType type,
                 std::int64_t heads) {
  if (scale.data == nullptr) return {};
  if (type != DataType::kE4M3) {
    raise(fmt::format("{}: {} is for a cache of e4m3, but it has elements of {}", verb, what, name_of(type)));
  }
  check_tensor(verb, what, scale, 1, 1, "1 axis, one number or one for each head of the cache");
  if (scale.type != DataType::kF32 || scale.device != Device::kHost) {
    raise(fmt::format("{}: {} must be f32 on the host", verb, what));
  }
  if (scale.shape[0] != 1 && scale.shape[0] != heads) {
    raise(fmt::format("{}: {} has {} numbers but must have 1, or 1 for each of the {} heads of the cache", verb, what,
                      scale.shape[0], heads));
  }
  const Scales scales{static_cast<const float*>(scale.data), scale.shape[0] == 1 ? 0 : scale.strides[0]};
  for (std::int64_t h = 0; h < scale.shape[0]; ++h) {
    if (scales.of(h) > 0 && std::isfinite(scales.of(h))) continue;
    raise(fmt::format("{}: {} must be positive and finite but is {} for head {}", verb, what, scales.of(h), h));
  }
  return scales;
}

void check_writable(std::string_view verb, std::string_view what, const TensorView& elements) {
  const TensorView view = in_blocks(elements);
  if (count_of(view.shape) == 0) return;
  for (int axis = 0; axis < view.shape.rank; ++axis) {
    if (view.shape[axis] > 1 && view.strides[axis] == 0) {
      raise(fmt::format("{}: {} cannot be written: axis {} has stride 0", verb, what, axis));
    }
  }
  if (meets_itself(view)) {
    raise(fmt::format("{}: {} is not writable: with shape {} and strides {}, two elements share an address", verb,
                      what, to_string(view.shape), to_string(view.strides)));
  }
}

bool do_overlap(const ConstTensorView& one_of_elements, const ConstTensorView& other_of_elements) {
  const ConstTensorView one = in_blocks(one_of_elements), other = in_blocks(other_of_elements);
  const Bytes a = bytes_of(one_of_elements), b = bytes_of(other_of_elements);
  if (a.first >= b.second || b.first >= a.second) return false;
  // Parts of one array may be interleaved, such as q, k and v from one product.
  const std::int64_t size = size_of(one.type), other_size = size_of(other.type);
  Distances distances;
  for (int axis = 0; axis < one.shape.rank; ++axis) distances.add(one.strides[axis] * size, one.shape[axis] - 1);
  for (int axis = 0; axis < other.shape.rank; ++axis) {
    distances.add(-other.strides[axis] * other_size, other.shape[axis] - 1);
  }
  const auto offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(one.data) -
                                                reinterpret_cast<std::uintptr_t>(other.data));
  return distances.has_between(offset, -size, other_size);
}

void check_same_shape(std::string_view verb, const TensorView& out, const ConstTensorView& x) {
  if (out.shape == x.shape) return;
  raise(fmt::format("{}: out has shape {} but x has {}", verb, to_string(out.shape), to_string(x.shape)));
}

void check_same_or_apart(std::string_view verb, const TensorView& out, const ConstTensorView& x) {
  if (count_of(x.shape) == 0 || (out.data == x.data && out.strides == x.strides && out.type == x.type)) return;
  if (do_overlap(out, x)) raise(fmt::format("{}: out must either be x or not overlap it", verb));
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
