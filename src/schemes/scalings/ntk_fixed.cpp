#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {

template <class N> schemes::Scaled<N> ntk_fixed(const NtkFixedScaling& scaling, const schemes::Spectrum<N>& from) {
  schemes::check_positive(scaling.name, "factor", scaling.factor);
  schemes::Scaled<N> to;
  to.base = schemes::Real(from.base) * scaling.factor;
  to.frequencies = schemes::inverse_periods<N>(to.base, from.dims);
  to.scale = pow(schemes::Real(scaling.factor), schemes::Real(-2) / from.dims);
  for (N& frequency : to.frequencies) frequency *= schemes::as<N>(to.scale);
  return to;
}

}  // namespace

POSENC_SCALING(NtkFixedScaling, ntk_fixed)

}  // namespace posenc
