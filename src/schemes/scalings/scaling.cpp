#include "schemes/scalings/scaling.h"

namespace posenc::schemes {

template <> std::vector<Real> periods(const Real& base, std::int64_t dims) {
  return numerics::geometric_roots(Real(1) / base, dims / 2, dims / 2);
}

// base ** (arange(0, dims, 2) / dims), with a correctly rounded power.
template <> std::vector<float> periods(const Real& base, std::int64_t dims) {
  const Real narrow_base = numerics::nearest_float(Real(base.convert_to<double>()));
  const std::vector<Real> exact = numerics::geometric_roots(Real(1) / narrow_base, dims / 2, dims / 2);
  Real log = 0;  // computed if needed: not if dims is a power of 2
  std::vector<float> values;
  for (std::int64_t i = 0; i < dims / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dims);
    const Real rounded_off = Real(exponent) * dims - 2 * i;  // times dims
    Real value = exact[i];
    if (rounded_off != 0) {
      if (log == 0) log = numerics::log(narrow_base) / dims;
      // base^ε = Σ x^k / k! with x = ε ln base, below 2^-18: eight terms give 150 bits
      const Real x = rounded_off * log;
      Real term = 1, power = 1;
      for (int k = 1; k <= 8; ++k) power += (term *= x / k);
      value *= power;
    }
    values.push_back(numerics::nearest_float(value));
  }
  return values;
}

void check_positive(std::string_view scaling, std::string_view field, double value) {
  if (value > 0 && std::isfinite(value)) return;
  raise(fmt::format("rope: {} of scaling {} must be above 0 and finite but is {}", field, scaling, value));
}

void check_original_length(std::string_view scaling, std::int64_t original_length) {
  if (original_length >= 1 && original_length <= kPositionLimit) return;
  raise(fmt::format("rope: original_length of scaling {} must be between 1 and 2^53 but is {}", scaling,
                    original_length));
}

void need_length(std::string_view scaling, std::int64_t length) {
  if (length >= 1) return;
  raise(fmt::format("rope: scaling {} depends on the length of the sequence, which is not given", scaling));
}

Real stretched_base(std::string_view scaling, double base, const Real& factor, std::int64_t dims) {
  if (dims <= 2) raise(fmt::format("rope: scaling {} needs more than one pair, but dims is {}", scaling, dims));
  return base * pow(factor, Real(dims) / (dims - 2));
}

}  // namespace posenc::schemes
