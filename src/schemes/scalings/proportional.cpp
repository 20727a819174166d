#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {

template <class N>
schemes::Scaled<N> proportional(const ProportionalScaling& scaling, const schemes::Spectrum<N>& from) {
  schemes::check_positive(scaling.name, "factor", scaling.factor);
  if (!(scaling.proportion >= 0 && scaling.proportion <= 1)) {
    raise(fmt::format("rope: proportion of scaling proportional must be between 0 and 1 but is {}",
                      scaling.proportion));
  }
  const double turning = std::floor(scaling.proportion * static_cast<double>(from.dims) / 2);
  schemes::Scaled<N> to;
  to.frequencies = schemes::inverse_periods<N>(from.base, from.dims);
  for (std::int64_t i = 0; i < from.pairs(); ++i) {
    N& frequency = to.frequencies[i];
    frequency = static_cast<double>(i) < turning ? N(frequency / N(scaling.factor)) : N(0);
  }
  return to;
}

}  // namespace

POSENC_SCALING(ProportionalScaling, proportional)

}  // namespace posenc
