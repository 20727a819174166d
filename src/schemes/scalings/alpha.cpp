#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {

template <class N> schemes::Scaled<N> alpha(const AlphaScaling& scaling, const schemes::Spectrum<N>& from) {
  schemes::check_positive(scaling.name, "alpha", scaling.alpha);
  schemes::Scaled<N> to;
  to.base = schemes::stretched_base(scaling.name, from.base, scaling.alpha, from.dims);
  to.frequencies = schemes::inverse_periods<N>(to.base, from.dims);
  return to;
}

}  // namespace

POSENC_SCALING(AlphaScaling, alpha)

}  // namespace posenc
