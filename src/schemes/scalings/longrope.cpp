#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {

void check_list(std::string_view field, const std::vector<double>& factors, std::int64_t pairs) {
  if (static_cast<std::int64_t>(factors.size()) != pairs) {
    raise(fmt::format("rope: {} of scaling longrope must have one number for each of {} pairs but has {}", field,
                      pairs, factors.size()));
  }
  for (const double factor : factors) schemes::check_positive(LongropeScaling::name, field, factor);
}

double magnitude(const LongropeScaling& scaling) {
  if (scaling.attention_factor) return *scaling.attention_factor;
  if (scaling.factor <= 1) return 1;
  if (scaling.original_length == 1) {
    raise("rope: original_length of scaling longrope must be above 1 where the magnitude follows from it");
  }
  const schemes::Real ratio = log(schemes::Real(scaling.factor)) / log(schemes::Real(scaling.original_length));
  return sqrt(1 + ratio).convert_to<double>();
}

template <class N> schemes::Scaled<N> longrope(const LongropeScaling& scaling, const schemes::Spectrum<N>& from) {
  schemes::check_positive(scaling.name, "factor", scaling.factor);
  schemes::check_original_length(scaling.name, scaling.original_length);
  check_list("short_factors", scaling.short_factors, from.pairs());
  check_list("long_factors", scaling.long_factors, from.pairs());
  if (scaling.attention_factor) {
    schemes::check_positive(scaling.name, "attention_factor", *scaling.attention_factor);
  }
  schemes::need_length(scaling.name, from.length);
  const auto& factors = from.length > scaling.original_length ? scaling.long_factors : scaling.short_factors;
  schemes::Scaled<N> to;
  to.frequencies = schemes::periods<N>(from.base, from.dims);
  for (std::size_t i = 0; i < factors.size(); ++i) to.frequencies[i] = N(1) / (N(factors[i]) * to.frequencies[i]);
  to.magnitude = magnitude(scaling);
  return to;
}
}  // namespace

POSENC_SCALING(LongropeScaling, longrope)

}  // namespace posenc
