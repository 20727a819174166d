#include "posenc/schemes/shift.h"

#include "schemes/check.h"
#include "schemes/random.h"

namespace posenc {
Addition prepare(const Shift& scheme, const Situation&) {
  schemes::check_between(Shift::name, "width", scheme.width, 1, schemes::kWidthLimit);
  schemes::check_finite(Shift::name, "step", scheme.step);
  const auto width = static_cast<std::size_t>(scheme.width);
  Lines lines{std::vector<double>(width), std::vector<double>(width, scheme.step)};
  schemes::Random random(scheme.seed);
  for (double& start : lines.start) start = random.uniform();
  return {scheme.width, std::move(lines)};
}

}  // namespace posenc
