// exp, log, pow, sine and cosine for the module of the first page, without the C library's tables, which take more than
// this page itself. Nothing that is shown as exact depends on them: they give the values that Newton's method starts from,
// the growth of xPos, and points of a circle. Error: a few units in the last place, for the arguments that occur.

#include <cmath>
#include <limits>

namespace {
constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;
constexpr double kHalfPiHigh = 0x1.921fb544p0, kHalfPiLow = 0x1.0b4611a626331p-34;

// Σ x^k / k!, every second term with its sign, from the term `first` on: sine from 1, cosine from 0; |x| ≤ π/4.
double circular(double x, int first) {
  double sum = 1;
  for (int k = first + 18; k > first; k -= 2) sum = 1 - x * x / (k * (k - 1)) * sum;
  return first == 1 ? x * sum : sum;
}
double rotated(double x, int quarter) {
  const double turns = std::nearbyint(x / kHalfPiHigh);
  const double r = (x - turns * kHalfPiHigh) - turns * kHalfPiLow;
  const int which = (static_cast<int>(turns) + quarter) & 3;
  const double value = circular(r, which % 2 == 0 ? 1 : 0);
  return which < 2 ? value : -value;
}
}  // namespace

extern "C" {

double sin(double x) { return rotated(x, 0); }
double cos(double x) { return rotated(x, 1); }

double exp(double x) {
  if (!(x < 710)) return x + std::numeric_limits<double>::infinity();
  if (x < -750) return 0;
  const double steps = std::nearbyint(x / (kLn2High + kLn2Low));
  const double r = (x - steps * kLn2High) - steps * kLn2Low;
  double sum = 1;
  for (int k = 15; k > 0; --k) sum = 1 + r / k * sum;
  return std::ldexp(sum, static_cast<int>(steps));
}

double log(double x) {
  if (!(x > 0)) return x == 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (x > std::numeric_limits<double>::max()) return x;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  // ln m = 2 artanh((m − 1)/(m + 1))
  const double s = (m - 1) / (m + 1);
  double sum = 0;
  for (int k = 23; k > 1; k -= 2) sum = s * s * (1.0 / k + sum);
  return exponent * kLn2High + (2 * s + (2 * s * sum + exponent * kLn2Low));
}

double pow(double x, double y) {
  return x == 0 ? (y > 0 ? 0 : std::numeric_limits<double>::infinity()) : exp(y * log(x));
}
}
