#include "posenc/schemes/alibi.h"

#include <bit>

#include "numerics/narrow.h"
#include "numerics/real.h"
#include "schemes/check.h"

namespace posenc {
namespace {

using numerics::Real;

void check(const Alibi& s) {
  schemes::check_between(Alibi::name, "heads", s.heads, 1, schemes::kHeadLimit);
  if (!(s.max_bias > 0 && s.max_bias <= 1000)) {
    raise(fmt::format("alibi: max_bias must be above 0 and at most 1000 but is {}", s.max_bias));
  }
  if (!(s.scale >= 0) || !std::isfinite(s.scale)) {
    raise(fmt::format("alibi: scale must be at least 0 and finite but is {}", s.scale));
  }
}

// 2^(−max_bias · halves / (2P)): exact, or as engines make it in float32, by powers of a rounded first slope.
double slope_of(const Alibi& s, std::int64_t power, std::int64_t halves, Numerics numerics) {
  const Real step = -Real(s.max_bias) / power;
  if (numerics == Numerics::kExact) return Real(pow(Real(2), step * halves / 2)).convert_to<double>();
  const bool between = halves % 2 != 0;
  const float first = numerics::nearest_float(pow(Real(2), between ? Real(step / 2) : step));
  return static_cast<double>(numerics::nearest_float(pow(Real(first), Real(between ? halves : halves / 2))));
}

}  // namespace

Bias prepare(const Alibi& s, const Situation& now) {
  check(s);
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(s.heads)));
  Slopes source;
  for (std::int64_t h = 0; h < s.heads; ++h) {
    // in halves: the heads past the power of two stand between those before
    const std::int64_t halves = h < power ? 2 * (h + 1) : 2 * (h - power) + 1;
    const double slope = slope_of(s, power, halves, now.numerics);
    source.slopes.push_back(s.scale * (s.round_bf16 ? numerics::widen(numerics::narrow<BFloat16>(slope)) : slope));
  }
  return {s.heads, std::move(source)};
}

}  // namespace posenc
