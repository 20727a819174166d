#include "posenc/schemes/temperature.h"

#include "schemes/check.h"

namespace posenc {

Nothing prepare(const QueryTemperature& s, const PrepareOptions&) {
  schemes::check_finite(QueryTemperature::name, "scale", s.scale);
  schemes::check_between(QueryTemperature::name, "floor", s.floor, 1, kPositionLimit);
  // the logarithm of 0 tokens is infinite
  schemes::check_between(QueryTemperature::name, "start", s.start, s.rule == TemperatureRule::kTokens ? 1 : 0,
                         kPositionLimit);
  schemes::check_between(QueryTemperature::name, "number of head_scales", std::ssize(s.head_scales), 0,
                         schemes::kHeadLimit);
  for (const double scale : s.head_scales) schemes::check_finite(QueryTemperature::name, "head_scales", scale);
  return {.temperature = Temperature{s.scale, s.floor, s.start, s.rule, s.head_scales}};
}

}  // namespace posenc
