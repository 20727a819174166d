#include "posenc/positions.h"

#include <fmt/format.h>

#include "posenc/error.h"

namespace posenc {

std::vector<std::int64_t> packed_positions(std::span<const std::int64_t> lengths) {
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0)
      raise(fmt::format("packed_positions: length {} must not be negative but is {}", i, lengths[i]));
    for (std::int64_t p = 0; p < lengths[i]; ++p) ids.push_back(p);
  }
  return ids;
}

std::vector<std::int64_t> positions_from_mask(std::span<const std::int64_t> mask, const MaskOptions& options) {
  const auto size = static_cast<std::int64_t>(mask.size());
  if (options.batch < 1 || size % options.batch != 0) {
    raise(fmt::format("positions_from_mask: a mask of {} values does not divide into {} rows", size, options.batch));
  }
  if (options.padding < 0) {
    raise(fmt::format("positions_from_mask: padding must not be negative but is {}", options.padding));
  }
  const std::int64_t sequence = size / options.batch;
  std::vector<std::int64_t> ids(mask.size());
  for (std::int64_t row = 0; row < options.batch; ++row) {
    std::int64_t seen = 0;
    for (std::int64_t i = row * sequence; i < (row + 1) * sequence; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (mask[at] != 0) ++seen;
      const std::int64_t token = options.rule == MaskRule::kRoberta ? seen + options.padding : seen - 1;
      ids[at] = mask[at] != 0 ? token : options.padding;
    }
  }
  return ids;
}

std::vector<std::int64_t> grid_positions(std::span<const std::int64_t> extents) {
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    if (extents[axis] < 0) {
      raise(fmt::format("grid_positions: extent {} must not be negative but is {}", axis, extents[axis]));
    }
    if (__builtin_mul_overflow(count, extents[axis], &count) || count > kPositionLimit) {
      raise(fmt::format("grid_positions: the grid has more than {} cells", kPositionLimit));
    }
  }
  std::vector<std::int64_t> ids;
  ids.reserve(extents.size() * static_cast<std::size_t>(count));
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    std::int64_t repeat = 1;  // how many cells in a row share a coordinate of this axis
    for (std::size_t inner = axis + 1; inner < extents.size(); ++inner) repeat *= extents[inner];
    for (std::int64_t cell = 0; cell < count; ++cell) ids.push_back(cell / repeat % extents[axis]);
  }
  return ids;
}

}  // namespace posenc
