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

// ratio^0 … ratio^count, in double or float32.
template <class N> std::vector<double> powers_of(const Real& ratio, std::int64_t count) {
  std::vector<double> powers;
  Real power = 1;
  for (std::int64_t k = 0; k <= count; ++k, power *= ratio) {
    powers.push_back(static_cast<double>(power.convert_to<N>()));
  }
  return powers;
}

// 2^(−max_bias · halves / (2P)) for halves from 0 to `most`: exact, or as engines compute it in float32, by powers of
// a rounded first slope, one for whole steps and another for half steps.
std::vector<double> slopes_of(const Alibi& s, std::int64_t power, std::int64_t most, Numerics numerics) {
  const Real half = -Real(s.max_bias) / (2 * power), whole = half + half;
  if (numerics == Numerics::kExact) return powers_of<double>(pow(Real(2), half), most);
  const auto rounded = [&](const Real& step) {
    return powers_of<float>(numerics::nearest_float(pow(Real(2), step)), most);
  };
  std::vector<double> slopes = rounded(half);
  const std::vector<double> of_whole = rounded(whole);
  for (std::size_t halves = 0; halves < slopes.size(); halves += 2) slopes[halves] = of_whole[halves / 2];
  return slopes;
}

}  // namespace

Bias prepare(const Alibi& s, const PrepareOptions& options) {
  check(s);
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(s.heads)));
  const std::vector<double> slopes = slopes_of(s, power, 2 * power, options.numerics);
  Slopes source;
  for (std::int64_t h = 0; h < s.heads; ++h) {
    // in half steps: the heads past the power of two lie between those before
    const std::int64_t halves = h < power ? 2 * (h + 1) : 2 * (h - power) + 1;
    const double slope = slopes[halves];
    source.slopes.push_back(s.scale * (s.round_bf16 ? numerics::widen(numerics::narrow<BFloat16>(slope)) : slope));
  }
  return {s.heads, std::move(source)};
}

}  // namespace posenc
