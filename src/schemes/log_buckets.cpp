#include "schemes/log_buckets.h"

#include <boost/multiprecision/cpp_int.hpp>

#include "numerics/real.h"

namespace posenc::schemes {

LogStep log_step(std::int64_t from, std::int64_t to, std::int64_t step, std::int64_t steps) {
  using numerics::Real;
  const Real point = from * exp(log(Real(to) / from) * step / steps);
  const Real nearest = floor(point + Real(1) / 2);
  if (abs(point - nearest) > ldexp(point, -300)) return {floor(point).convert_to<std::int64_t>(), false};

  // n ≤ from · (to/from)^(step/steps), with both sides to the power `steps` and without the fraction
  using Whole = boost::multiprecision::cpp_int;
  const auto power = [](std::int64_t base, std::int64_t exponent) {
    return Whole(pow(Whole(base), static_cast<unsigned>(exponent)));
  };
  const auto n = nearest.convert_to<std::int64_t>();
  const Whole left = power(n, steps) * power(from, step), right = power(to, step) * power(from, steps);
  return {left <= right ? n : n - 1, left == right};
}

}  // namespace posenc::schemes
