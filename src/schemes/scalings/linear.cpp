#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {

template <class N> schemes::Scaled<N> linear(const LinearScaling& scaling, const schemes::Spectrum<N>& from) {
  schemes::check_positive(scaling.name, "factor", scaling.factor);
  schemes::Scaled<N> to;
  to.frequencies = schemes::inverse_periods<N>(from.base, from.dims);
  for (N& frequency : to.frequencies) frequency /= N(scaling.factor);
  to.scale = 1 / schemes::Real(scaling.factor);
  return to;
}

}  // namespace

POSENC_SCALING(LinearScaling, linear)

}  // namespace posenc
