#include "schemes/scalings/scaling.h"

namespace posenc {

template <class N> schemes::Scaled<N> scaled(const NoScaling&, const schemes::Spectrum<N>& from) {
  schemes::Scaled<N> to;
  to.frequencies = schemes::inverse_periods<N>(from.base, from.dims);
  return to;
}
POSENC_SCALING(NoScaling);

}  // namespace posenc
