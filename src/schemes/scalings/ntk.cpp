#include "schemes/scalings/scaling.h"

namespace posenc {

template <class N> schemes::Scaled<N> scaled(const NtkScaling& scaling, const schemes::Spectrum<N>& from) {
  schemes::check_positive(scaling.name, "factor", scaling.factor);
  schemes::Scaled<N> to;
  to.base = schemes::stretched_base(scaling.name, from.base, scaling.factor, from.dims);
  to.frequencies = schemes::inverse_periods<N>(to.base, from.dims);
  return to;
}
POSENC_SCALING(NtkScaling);

}  // namespace posenc
