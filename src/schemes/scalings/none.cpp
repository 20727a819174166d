#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {

template <class N> schemes::Scaled<N> unscaled(const NoScaling&, const schemes::Spectrum<N>& from) {
  schemes::Scaled<N> to;
  to.frequencies = schemes::inverse_periods<N>(from.base, from.dims);
  return to;
}

}  // namespace

POSENC_SCALING(NoScaling, unscaled)

}  // namespace posenc
