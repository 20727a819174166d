#include "posenc/positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "posenc/error.h"
#include "posenc/random.h"

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
      const std::size_t at = i;
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
  ids.reserve(extents.size() * count);
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    std::int64_t repeat = 1;  // consecutive cells that share a coordinate on this axis
    for (std::size_t inner = axis + 1; inner < extents.size(); ++inner) repeat *= extents[inner];
    for (std::int64_t cell = 0; cell < count; ++cell) ids.push_back(cell / repeat % extents[axis]);
  }
  return ids;
}

std::vector<std::int64_t> centred_positions(std::span<const std::int64_t> extents) {
  std::vector<std::int64_t> ids = grid_positions(extents);
  const std::size_t cells = extents.empty() ? 0 : ids.size() / extents.size();
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = 2 * ids[i] + 1 - extents[i / cells];
  return ids;
}

// Floyd's algorithm: one draw per position, whatever the range. Bentley, Floyd, 1987, "A sample of brilliance".
std::vector<std::int64_t> randomised_positions(std::int64_t count, std::int64_t longest, std::uint64_t seed) {
  if (count < 0 || longest < count || longest > kPositionLimit) {
    raise(fmt::format("randomised_positions: longest must be from count, {}, to 2^53 but is {}", count, longest));
  }
  Random random(seed);
  std::unordered_set<std::int64_t> taken;
  std::vector<std::int64_t> ids;
  ids.reserve(count);
  for (std::int64_t last = longest - count; last < longest; ++last) {
    const std::int64_t drawn = random.below(last + 1);
    ids.push_back(taken.insert(drawn).second ? drawn : last);
    taken.insert(ids.back());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

Fractions fractions_of(std::span<const double> numbers) {
  Fractions made;
  int bits = 0;  // fraction bits of the finest number
  for (const double number : numbers) {
    if (!std::isfinite(number)) raise(fmt::format("fractions_of: {} is not a finite number", number));
    int exponent = 0;
    double digits = std::frexp(number, &exponent);
    if (digits == 0) continue;
    int behind = 53 - exponent;  // fraction bits, of 53; trailing zeros do not count
    for (digits = std::ldexp(digits, 53); std::fmod(digits, 2) == 0; digits /= 2) --behind;
    bits = std::max(bits, behind);
  }
  if (bits > 61) raise(fmt::format("fractions_of: a number has {} binary digits behind the point, 61 at most", bits));
  made.denominator = std::int64_t{1} << bits;
  for (const double number : numbers) {
    const double numerator = std::ldexp(number, bits);
    if (!(std::fabs(numerator) < static_cast<double>(kPositionLimit))) {
      raise(fmt::format("fractions_of: {} over {} is past 2^53", number, made.denominator));
    }
    made.numerators.push_back(static_cast<std::int64_t>(numerator));
  }
  return made;
}

}  // namespace posenc
