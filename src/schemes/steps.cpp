#include "posenc/schemes/steps.h"

#include "schemes/check.h"

namespace posenc {

Addition prepare(const Steps& scheme, const PrepareOptions&) {
  schemes::check_between(Steps::name, "width", scheme.width, 1, schemes::kWidthLimit);
  schemes::check_finite(Steps::name, "step", scheme.step);
  const std::size_t width = scheme.width;
  return {scheme.width, Lines{std::vector<double>(width, 0.0), std::vector<double>(width, scheme.step)}};
}

}  // namespace posenc
