#include "posenc/schemes/patch_rope.h"

#include "numerics/real.h"
#include "schemes/check.h"

namespace posenc {

Rotation prepare(const PatchRope& s, const PrepareOptions& options) {
  using numerics::Real;
  const auto axes = static_cast<std::int64_t>(s.patches.size());
  schemes::check_between(PatchRope::name, "number of extents of patches", axes, 1, 3);
  for (const std::int64_t extent : s.patches) {
    schemes::check_between(PatchRope::name, "extents of patches", extent, 1, schemes::kWidthLimit);
  }
  schemes::check_between(PatchRope::name, "dims", s.dims, 2 * axes, schemes::kWidthLimit);
  if (s.dims % (2 * axes) != 0) {
    raise(fmt::format("patch-rope: dims must be a multiple of {} for {} axes but is {}", 2 * axes, axes, s.dims));
  }
  if (!(s.base > 1.0 && s.base <= 1e36)) {
    raise(fmt::format("patch-rope: base must be above 1 and at most 1e36 but is {}", s.base));
  }
  if (options.numerics != Numerics::kExact) {
    raise(fmt::format("patch-rope: {} is not available: coordinates are fractions", name_of(options.numerics)));
  }
  const std::int64_t pairs = s.dims / (2 * axes);
  const std::vector<Real> turns = numerics::geometric_roots(s.base, pairs, pairs);
  Rotation rotation;
  PairWaves waves;
  rotation.layout = s.layout;
  rotation.position_axes = static_cast<int>(axes);
  rotation.precision = options.precision;
  for (std::int64_t axis = 0; axis < axes; ++axis) {
    for (const Real& turn : turns) {
      // before whole turns are dropped: frequency 1 is a whole turn for c = 1, but not for 1/N
      const Real radians = numerics::two_pi() * turn / s.patches[axis];
      rotation.frequencies.push_back(numerics::frequency_from(radians));
      if (axes > 1) waves.axes.push_back(static_cast<std::uint8_t>(axis));
    }
  }
  rotation.source = std::move(waves);
  return rotation;
}

}  // namespace posenc
