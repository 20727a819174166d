#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {

template <class N> schemes::Scaled<N> ntk(const NtkScaling& scaling, const schemes::Spectrum<N>& from) {
  schemes::check_positive(scaling.name, "factor", scaling.factor);
  schemes::Scaled<N> to;
  to.base = schemes::stretched_base(scaling.name, from.base, scaling.factor, from.dims);
  to.frequencies = schemes::inverse_periods<N>(to.base, from.dims);
  return to;
}

}  // namespace

POSENC_SCALING(NtkScaling, ntk)

}  // namespace posenc
