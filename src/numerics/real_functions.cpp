// Roots, powers, exponentials and logarithms with 448 bits.

#include <cmath>

#include "numerics/real_access.h"

namespace posenc::numerics {
namespace {

constexpr int kGoodBits = 416;  // of results from series and Newton steps

// Rounds to kGoodBits, so that the result is 2 when 2 − 2^-430 was computed.
Real to_good_bits(const Real& x) {
  if (RealAccess::kind(x) != RealAccess::Kind::kFinite) return x;
  // adding a number as large as the bits to keep shifts the others out
  const Real large = ldexp(Real(RealAccess::negative(x) ? -1 : 1),
                           static_cast<int>(RealAccess::exponent(x)) + Real::kBits - kGoodBits - 1);
  return x + large - large;
}

const Real& ln_two() {
  static const Real value({0xed2eae35c1382144, 0x559552fb4afa1b10, 0xe7b876206debac98, 0x8a0d175b8baafa2b,
                           0x40f343267298b62d, 0xc9e3b39803f2f6af, 0xb17217f7d1cf79ab},
                          0);
  return value;
}

// Not rounded at the end: the remaining bits of the 448 help callers that continue the computation.
Real exp_of_real(const Real& x) {
  constexpr int kHalvings = 12, kTerms = 30;  // |r| < 2^-13.5: the first omitted term is below 2^-490
  const double turns = std::nearbyint(x.convert_to<double>() / 0.69314718055994530942);
  const Real r = ldexp(x - ln_two() * turns, -kHalvings);
  Real sum = 1;
  for (int n = kTerms; n > 0; --n) sum = Real(1) + sum * r / n;
  for (int i = 0; i < kHalvings; ++i) sum *= sum;
  return ldexp(sum, static_cast<int>(turns));
}

// x = m · 2^e, m from √½ to √2: y ← y + 2 (m − e^y)/(m + e^y), which triples the correct bits.
Real log_of_real(const Real& x) {
  std::int64_t exponent = RealAccess::exponent(x);
  Real m = RealAccess::with_exponent(x, 0);
  if (m < 0.70710678118654752) {
    m = ldexp(m, 1);
    --exponent;
  }
  Real y = std::log(m.convert_to<double>());
  for (int step = 0; step < 3; ++step) {
    const Real e = exp_of_real(y);
    y += ldexp(m - e, 1) / (m + e);
  }
  return y + ln_two() * exponent;
}

bool is_finite_and_positive(const Real& x) { return RealAccess::kind(x) == RealAccess::Kind::kFinite && x > 0; }

}  // namespace

Real sqrt(const Real& x) {
  if (!is_finite_and_positive(x)) return x < 0 ? RealAccess::special(RealAccess::Kind::kNan) : x;
  const std::int64_t half = RealAccess::exponent(x) / 2;
  const Real scaled = RealAccess::with_exponent(x, RealAccess::exponent(x) - 2 * half);
  Real root = std::sqrt(scaled.convert_to<double>());
  for (int step = 0; step < 4; ++step) root = ldexp(root + scaled / root, -1);
  return ldexp(to_good_bits(root), static_cast<int>(half));
}

Real exp(const Real& x) {
  using Kind = RealAccess::Kind;
  constexpr double kFarthest = 1 << 30;
  if (RealAccess::kind(x) == Kind::kNan) return x;
  if (x > kFarthest) return RealAccess::special(Kind::kInfinite);
  if (x < -kFarthest) return 0;
  return to_good_bits(exp_of_real(x));
}

Real log(const Real& x) {
  using Kind = RealAccess::Kind;
  if (x < 0) return RealAccess::special(Kind::kNan);
  if (x == 0) return RealAccess::special(Kind::kInfinite, true);
  return is_finite_and_positive(x) ? log_of_real(x) : x;
}

Real pow(const Real& x, const Real& y) {
  constexpr double kMostSquarings = 1 << 20;
  if (y == floor(y) && abs(y) <= kMostSquarings) {
    Real power = 1, square = x;
    for (auto left = abs(y).convert_to<std::uint64_t>(); left > 0; left /= 2) {
      if (left % 2 != 0) power *= square;
      square *= square;
    }
    return y < 0 ? 1 / power : power;
  }
  if (x == 0 && y > 0) return 0;
  return exp(y * log(x));
}

}  // namespace posenc::numerics
