#include "numerics/logarithm.h"

#include <array>
#include <cmath>

namespace posenc::numerics {
namespace {

constexpr int kSteps = 128;  // table entries per power of two

struct Tables {
  Wide ln2;
  std::array<Wide, kSteps + 1> logs;  // ln(j / kSteps), from ½ on
  std::array<Wide, kSteps> powers;    // 2^(j / kSteps)
};

Tables make_tables() {
  Tables made;
  made.ln2 = wide_from(log(Real(2)));
  for (std::size_t j = kSteps / 2; j <= kSteps; ++j) made.logs[j] = wide_from(log(Real(j) / kSteps));
  for (std::size_t j = 0; j < kSteps; ++j) made.powers[j] = wide_from(pow(Real(2), Real(j) / kSteps));
  return made;
}

const Tables& tables() {
  static const Tables made = make_tables();
  return made;
}

Wide divided(const Wide& a, double b) noexcept {
  const double first = a.high / b;
  const double rest = std::fma(-first, b, a.high) + a.low;
  return exact_sum(first, rest / b);
}

// b must not be larger than a.
Wide quick_sum(double a, double b) noexcept {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

}  // namespace

Wide exact_sum(double a, double b) noexcept {
  const double sum = a + b, part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

Wide exact_product(double a, double b) noexcept {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

Wide sum_of(const Wide& a, const Wide& b) noexcept {
  const Wide high = exact_sum(a.high, b.high), low = exact_sum(a.low, b.low);
  const Wide partial = quick_sum(high.high, high.low + low.high);
  return quick_sum(partial.high, partial.low + low.low);
}

Wide product_of(const Wide& a, const Wide& b) noexcept {
  const Wide high = exact_product(a.high, b.high);
  return quick_sum(high.high, high.low + (a.high * b.low + a.low * b.high));
}

Wide wide_from(const Real& value) {
  const auto high = value.convert_to<double>();
  return {high, Real(value - high).convert_to<double>()};
}

Wide log_of(const Wide& x) {
  // x = 2^e · m, m between √½ and √2; c is the table step nearest to m, so ln x = e·ln 2 + ln c + ln(1 + r)
  int exponent = 0;
  double m = std::frexp(x.high, &exponent);  // from ½ to 1
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const Wide scaled = {m, std::ldexp(x.low, -exponent)};
  // steps above 1 are twice as wide: their logarithms are those of their half, plus ln 2
  const bool above = m > 1;
  const int steps = above ? kSteps / 2 : kSteps;
  const int step = static_cast<int>(std::nearbyint(m * steps));
  const double c = static_cast<double>(step) / steps;
  const Wide r = divided(sum_of(scaled, {-c, 0.0}), c);

  // ln(1 + r) = r − r²/2 + r³/3 − …, |r| ≤ 2^-6.5: the omitted terms are below 2^-80 of r
  double tail = 0.0;
  for (int n = 14; n >= 5; --n) tail = (n % 2 == 1 ? 1.0 : -1.0) / n + r.high * tail;
  Wide sum = exact_sum(-0.25, tail * r.high);
  sum = sum_of(divided({1.0, 0.0}, 3.0), product_of(sum, r));
  sum = sum_of({-0.5, 0.0}, product_of(sum, r));
  sum = sum_of({1.0, 0.0}, product_of(sum, r));
  sum = product_of(sum, r);

  const Tables& known = tables();
  // near 1 the two parts cancel exactly: ln ½ is −ln 2 in the table
  const Wide powers = product_of(known.ln2, {static_cast<double>(exponent + (above ? 1 : 0)), 0.0});
  return sum_of(sum_of(powers, known.logs[step]), sum);
}

Wide exp_of(const Wide& x) {
  const Tables& known = tables();
  const double steps = std::nearbyint(x.high * kSteps / known.ln2.high);
  // the division is by a power of two
  Wide r = sum_of(x, exact_product(-steps / kSteps, known.ln2.high));
  r = sum_of(r, exact_product(-steps / kSteps, known.ln2.low));

  // e^r = 1 + r + r²/2 + …, |r| ≤ 2^-8.5
  double tail = 0.0;
  for (int n = 12; n >= 5; --n) tail = 1.0 + r.high / (n + 1) * tail;
  // Σ from r^4/24 on: 1/24 · r⁴ · (1 + r/5 · (1 + r/6 …))
  Wide sum = sum_of(divided({1.0, 0.0}, 24.0), {r.high / 120.0 * tail, 0.0});
  sum = sum_of(divided({1.0, 0.0}, 6.0), product_of(sum, r));
  sum = sum_of({0.5, 0.0}, product_of(sum, r));
  sum = sum_of({1.0, 0.0}, product_of(sum, r));
  sum = sum_of({1.0, 0.0}, product_of(sum, r));

  const auto count = static_cast<long>(steps);
  const long turns = count >= 0 ? count / kSteps : -((-count + kSteps - 1) / kSteps);
  const Wide scaled = product_of(sum, known.powers[count - turns * kSteps]);
  return {std::ldexp(scaled.high, static_cast<int>(turns)), std::ldexp(scaled.low, static_cast<int>(turns))};
}

}  // namespace posenc::numerics
