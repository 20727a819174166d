#include "schemes/log_buckets.h"

#include <algorithm>
#include <vector>

#include "numerics/fixed.h"
#include "numerics/real.h"

namespace posenc::schemes {
namespace {

/// base^exponent · other_base^other_exponent, exact: words, lowest first, the highest not 0.
std::vector<std::uint64_t> whole_powers(std::int64_t base, std::int64_t exponent, std::int64_t other_base,
                                        std::int64_t other_exponent) {
  std::vector<std::uint64_t> words = {1};
  for (std::int64_t i = 0; i < exponent + other_exponent; ++i) {
    numerics::uint128 carry = 0;
    for (std::uint64_t& word : words) {
      carry += static_cast<numerics::uint128>(word) * static_cast<std::uint64_t>(i < exponent ? base : other_base);
      word = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    if (carry != 0) words.push_back(static_cast<std::uint64_t>(carry));
  }
  return words;
}

}  // namespace

LogStep log_step(std::int64_t from, std::int64_t to, std::int64_t step, std::int64_t steps) {
  using numerics::Real;
  const Real point = from * exp(log(Real(to) / from) * step / steps);
  const Real nearest = floor(point + Real(1) / 2);
  if (abs(point - nearest) > ldexp(point, -300)) return {floor(point).convert_to<std::int64_t>(), false};

  // n ≤ from · (to/from)^(step/steps), with both sides raised to the power `steps` and multiplied out
  const auto n = nearest.convert_to<std::int64_t>();
  const std::vector<std::uint64_t> left = whole_powers(n, steps, from, step),
                                   right = whole_powers(to, step, from, steps);
  const bool is_below = left.size() != right.size()
                            ? left.size() < right.size()
                            : std::lexicographical_compare(left.rbegin(), left.rend(), right.rbegin(), right.rend());
  return {is_below || left == right ? n : n - 1, left == right};
}

}  // namespace posenc::schemes
