// Converts frequencies to and from 448-bit numbers.

#include <fmt/format.h>

#include <cmath>

#include "numerics/fixed.h"
#include "numerics/real_access.h"
#include "posenc/error.h"

namespace posenc {
namespace numerics {

const Real& two_pi() {
  static const Real value({0x302b0a6df25f1437, 0xef9519b3cd3a431b, 0x514a08798e3404dd, 0x020bbea63b139b22,
                           0x29024e088a67cc74, 0xc4c6628b80dc1cd1, 0xc90fdaa22168c234},
                          3);
  return value;
}

namespace {

/// 64 bits of a number's words from bit `first` on; bits below 0 are zeros.
std::uint64_t bits_from(const RealAccess::Words& words, std::int64_t first) {
  constexpr int kBits = 64;
  if (first <= -kBits || first >= Real::kBits) return 0;
  if (first < 0) return words[0] << -first;
  const std::size_t at = first / kBits;
  const int rest = static_cast<int>(first % kBits);
  if (rest == 0) return words[at];
  const std::uint64_t above = at + 1 < words.size() ? words[at + 1] << (kBits - rest) : 0;
  return words[at] >> rest | above;
}

// Rounds turns to a 256-bit fraction, by their bits.
Frequency frequency_from_real_turns(const Real& turns) {
  constexpr int kFraction = 256;
  Frequency frequency;
  if (turns == 0) return frequency;
  const RealAccess::Words& words = RealAccess::words(turns);
  const std::int64_t shift = RealAccess::exponent(turns) - Real::kBits + kFraction;
  std::uint64_t carry = bits_from(words, -shift - 1) & 1;  // the first dropped bit: rounds to nearest
  for (std::size_t word = 0; word < 4; ++word) {
    frequency.words[word] = bits_from(words, 64 * static_cast<std::int64_t>(word) - shift) + carry;
    carry = carry != 0 && frequency.words[word] == 0 ? 1 : 0;
  }
  return turns < 0 ? opposite(frequency) : frequency;
}

// base^(−1/n) by Newton's method, r += r · (1 − base · r^n) / n, starting from the machine's own arithmetic: each
// step doubles the correct bits. 0 if it does not converge to the last bits.
Real inverse_root(const Real& base, std::int64_t n) {
  Real root = std::pow(base.convert_to<double>(), -1.0 / static_cast<double>(n));
  const Real share = Real(1) / n;
  for (int step = 0; step < 5; ++step) {
    Real power = 1, square = root;  // root^n
    for (std::int64_t left = n; left > 0; left /= 2) {
      if (left % 2 != 0) power *= square;
      square *= square;
    }
    const Real error = Real(1) - base * power;
    root += root * error * share;
    if (abs(error) < ldexp(Real(1), -200)) return root;  // the step has doubled that
  }
  return 0;
}

void check_range(double value, const char* what) {
  const double magnitude = std::fabs(value);
  if (value == 0 || (magnitude >= 0x1p-136 && magnitude <= 0x1p100)) return;
  raise(fmt::format("frequency: {} must be 0 or between 2^-136 and 2^100 in size but is {:f}", what, value));
}

}  // namespace

Frequency frequency_from(const Real& radians) {
  static const Real turns = Real(1) / two_pi();  // a division takes thirty times as long as a product
  return frequency_from_real_turns(radians * turns);
}

namespace {
// 1, ratio, ratio², …
std::vector<Real> powers_of(const Real& ratio, std::int64_t count) {
  std::vector<Real> values;
  values.reserve(count);
  Real value = 1;
  for (std::int64_t k = 0; k < count; ++k) {
    values.push_back(value);
    value *= ratio;
  }
  return values;
}
}  // namespace

std::vector<Real> geometric(const Real& base, const Real& step, std::int64_t count) {
  return powers_of(pow(base, -step), count);
}

std::vector<Real> geometric_roots(const Real& base, std::int64_t n, std::int64_t count) {
  Real ratio = inverse_root(base, n);
  if (!(ratio > 0)) ratio = pow(base, Real(-1) / n);
  return powers_of(ratio, count);
}

}  // namespace numerics

Frequency frequency_from_radians(double radians) {
  numerics::check_range(radians, "radians");
  return numerics::frequency_from(numerics::Real(radians));
}

Frequency frequency_from_turns(double turns) {
  numerics::check_range(turns, "turns");
  return numerics::frequency_from_real_turns(numerics::Real(turns));
}

Frequency difference_of(const Frequency& one, const Frequency& other) noexcept {
  Frequency difference;
  bool borrow = false;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint64_t a = one.words[i], b = other.words[i], partial = a - b;
    difference.words[i] = partial - (borrow ? 1u : 0u);
    borrow = a < b || (borrow && partial == 0);
  }
  return difference;
}

double radians_of(const Frequency& frequency) noexcept {
  const bool behind = (frequency.words[3] >> 63) != 0 && frequency != Frequency{{0, 0, 0, std::uint64_t{1} << 63}};
  const Frequency size = behind ? numerics::opposite(frequency) : frequency;
  numerics::Real turns = 0;
  for (std::size_t word = 4; word-- > 0;) turns = turns * 0x1p64 + size.words[word];
  const double radians = (ldexp(turns, -256) * numerics::two_pi()).convert_to<double>();
  return behind ? -radians : radians;
}

}  // namespace posenc
