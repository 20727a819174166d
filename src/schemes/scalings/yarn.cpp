#include <algorithm>

#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {

using schemes::Real;

// The pair, as a real number, that makes `turns` turns in the trained length.
Real pair_with(const YarnScaling& scaling, double turns, double base, std::int64_t dims) {
  return dims * log(scaling.original_length / (turns * numerics::two_pi())) / (2 * log(Real(base)));
}

void check(const YarnScaling& scaling) {
  schemes::check_positive(scaling.name, "factor", scaling.factor);
  schemes::check_original_length(scaling.name, scaling.original_length);
  schemes::check_positive(scaling.name, "beta_fast", scaling.beta_fast);
  schemes::check_positive(scaling.name, "beta_slow", scaling.beta_slow);
  if (scaling.beta_fast < scaling.beta_slow) {
    raise(fmt::format("rope: beta_fast of scaling yarn must not be below beta_slow, but they are {} and {}",
                      scaling.beta_fast, scaling.beta_slow));
  }
  if (scaling.attention_factor) {
    schemes::check_positive(scaling.name, "attention_factor", *scaling.attention_factor);
  }
  schemes::check_finite("rope", "mscale of scaling yarn", scaling.mscale.value_or(0));
  schemes::check_finite("rope", "mscale_all_dim of scaling yarn", scaling.mscale_all_dim.value_or(0));
}

Real gain(double factor, double weight) { return factor <= 1 ? Real(1) : Real(weight) * log(Real(factor)) / 10 + 1; }

// 0 means "not given", as in the configs that have these keys.
double magnitude(const YarnScaling& s) {
  if (s.attention_factor) return *s.attention_factor;
  const double mscale = s.mscale.value_or(0), all = s.mscale_all_dim.value_or(0);
  const Real value = mscale != 0 && all != 0 ? gain(s.factor, mscale) / gain(s.factor, all) : gain(s.factor, 1);
  return value.convert_to<double>();
}

template <class N> schemes::Scaled<N> yarn(const YarnScaling& scaling, const schemes::Spectrum<N>& from) {
  check(scaling);
  Real low = pair_with(scaling, scaling.beta_fast, from.base, from.dims);
  Real high = pair_with(scaling, scaling.beta_slow, from.base, from.dims);
  if (scaling.truncate) {
    low = floor(low);
    high = ceil(high);
  }
  low = std::max(low, Real(0));
  high = std::min(high, Real(from.dims - 1));
  if (low == high) high += Real(1) / 1000;  // as published: a step, not a division by zero
  const N first = schemes::as<N>(low), span = schemes::as<N>(high - low);

  schemes::Scaled<N> to;
  to.frequencies = schemes::periods<N>(from.base, from.dims);
  for (std::int64_t i = 0; i < from.pairs(); ++i) {
    const N ramp = std::clamp((N(i) - first) / span, N(0), N(1));
    const N kept = N(1) - ramp;
    N& value = to.frequencies[i];
    const N slowed = N(1) / (N(scaling.factor) * value), whole = N(1) / value;
    value = slowed * (N(1) - kept) + whole * kept;
    to.kept.push_back(Real(kept));
  }
  to.scale = 1 / Real(scaling.factor);
  to.magnitude = magnitude(scaling);
  const double weight = scaling.mscale_on_softmax ? scaling.mscale_all_dim.value_or(0) : 0.0;
  const Real softmax = gain(scaling.factor, weight);
  to.softmax_factor = (softmax * softmax).convert_to<double>();
  return to;
}
}  // namespace

POSENC_SCALING(YarnScaling, yarn)

}  // namespace posenc
