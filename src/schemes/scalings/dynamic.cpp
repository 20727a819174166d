#include <algorithm>

#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {

template <class N> schemes::Scaled<N> dynamic(const DynamicScaling& scaling, const schemes::Spectrum<N>& from) {
  schemes::check_positive(scaling.name, "factor", scaling.factor);
  schemes::check_original_length(scaling.name, scaling.original_length);
  schemes::need_length(scaling.name, from.length);
  const schemes::Real factor = scaling.factor;
  const std::int64_t length = std::max(from.length, scaling.original_length);
  schemes::Scaled<N> to;
  to.base = schemes::stretched_base(scaling.name, from.base, factor * length / scaling.original_length - (factor - 1),
                                    from.dims);
  to.frequencies = schemes::inverse_periods<N>(to.base, from.dims);
  return to;
}

}  // namespace

POSENC_SCALING(DynamicScaling, dynamic)

}  // namespace posenc
