#include "schemes/scalings/scaling.h"

namespace posenc::schemes {

template <> std::vector<Real> periods(const Real& base, std::int64_t dims) {
  std::vector<Real> values = numerics::geometric(base, Real(-2) / dims, dims / 2);
  return values;
}

// base ** (arange(0, dims, 2) / dims), with a correctly rounded power.
template <> std::vector<float> periods(const Real& base, std::int64_t dims) {
  const Real narrow_base = numerics::nearest_float(Real(base.convert_to<double>()));
  std::vector<float> values;
  for (std::int64_t i = 0; i < dims / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dims);
    values.push_back(numerics::nearest_float(pow(narrow_base, Real(exponent))));
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
