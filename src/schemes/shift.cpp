#include "posenc/schemes/shift.h"

#include "posenc/random.h"
#include "schemes/check.h"

namespace posenc {
Addition prepare(const Shift& scheme, const PrepareOptions&) {
  schemes::check_between(Shift::name, "width", scheme.width, 1, schemes::kWidthLimit);
  schemes::check_finite(Shift::name, "step", scheme.step);
  const std::size_t width = scheme.width;
  Lines lines{std::vector<double>(width), std::vector<double>(width, scheme.step)};
  Random random(static_cast<std::uint64_t>(scheme.seed));
  for (double& start : lines.start) start = random.uniform();
  return {scheme.width, std::move(lines)};
}

}  // namespace posenc
