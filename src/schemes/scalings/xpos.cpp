#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {

template <class N> schemes::Scaled<N> xpos(const XposScaling& scaling, const schemes::Spectrum<N>& from) {
  schemes::check_positive(scaling.name, "scale_base", scaling.scale_base);
  schemes::check_between("rope", "centre of scaling xpos", scaling.centre, 0, kPositionLimit - 1);
  schemes::Scaled<N> to;
  to.frequencies = schemes::inverse_periods<N>(from.base, from.dims);
  to.growth.centre = scaling.centre;
  for (std::int64_t i = 0; i < from.pairs(); ++i) {
    const schemes::Real zeta = (schemes::Real(20 * i) + 4 * from.dims) / (14 * from.dims);
    to.growth.rates.push_back((log(zeta) / scaling.scale_base).convert_to<double>());
  }
  return to;
}

}  // namespace

POSENC_SCALING(XposScaling, xpos)

}  // namespace posenc
