#include "numerics/real.h"

#include <fmt/format.h>

#include <array>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <memory>
#include <new>
#include <string>

#include "numerics/fixed.h"
#include "posenc/error.h"

#if !defined(__cpp_exceptions)
// Where nothing can be thrown, Boost asks the program what to do instead.
namespace boost {
void throw_exception(const std::exception& error, const source_location&) { posenc::raise(error.what()); }
void throw_exception(const std::exception& error) { posenc::raise(error.what()); }
}  // namespace boost
#endif

namespace posenc {
namespace numerics {

namespace {
using Big =
    boost::multiprecision::number<boost::multiprecision::cpp_bin_float<400, boost::multiprecision::digit_base_2>,
                                  boost::multiprecision::et_off>;
}  // namespace

// The one way into a Real's storage.
struct RealAccess {
  static_assert(sizeof(Big) <= sizeof(Real::storage_) && alignof(Big) <= 16);
  static_assert(std::is_trivially_destructible_v<Big>, "a Real is left without a word");

  static void make(Real& x, const Big& value) { std::construct_at(reinterpret_cast<Big*>(x.storage_), value); }
  static Big& of(Real& x) { return *std::launder(reinterpret_cast<Big*>(x.storage_)); }
  static const Big& of(const Real& x) { return *std::launder(reinterpret_cast<const Big*>(x.storage_)); }
};

namespace {
const Big& big(const Real& x) { return RealAccess::of(x); }
Real real(const Big& value) {
  Real x;
  RealAccess::of(x) = value;
  return x;
}
}  // namespace

void Real::make(double value) { RealAccess::make(*this, Big(value)); }
void Real::make(std::int64_t value) { RealAccess::make(*this, Big(value)); }
void Real::make(std::uint64_t value) { RealAccess::make(*this, Big(value)); }
Real::Real(const Real& other) { RealAccess::make(*this, big(other)); }
Real& Real::operator=(const Real& other) {
  if (this != &other) RealAccess::of(*this) = big(other);
  return *this;
}

Real& Real::operator+=(const Real& other) { return RealAccess::of(*this) += big(other), *this; }
Real& Real::operator-=(const Real& other) { return RealAccess::of(*this) -= big(other), *this; }
Real& Real::operator*=(const Real& other) { return RealAccess::of(*this) *= big(other), *this; }
Real& Real::operator/=(const Real& other) { return RealAccess::of(*this) /= big(other), *this; }
Real Real::operator-() const { return real(-big(*this)); }
bool operator==(const Real& a, const Real& b) { return big(a) == big(b); }
std::partial_ordering operator<=>(const Real& a, const Real& b) {
  if (big(a) < big(b)) return std::partial_ordering::less;
  if (big(a) > big(b)) return std::partial_ordering::greater;
  return big(a) == big(b) ? std::partial_ordering::equivalent : std::partial_ordering::unordered;
}

template <> float Real::convert_to() const { return big(*this).convert_to<float>(); }
template <> double Real::convert_to() const { return big(*this).convert_to<double>(); }
template <> std::int64_t Real::convert_to() const { return big(*this).convert_to<std::int64_t>(); }
template <> std::uint64_t Real::convert_to() const { return big(*this).convert_to<std::uint64_t>(); }

Real abs(const Real& x) { return real(abs(big(x))); }
Real floor(const Real& x) { return real(floor(big(x))); }
Real ceil(const Real& x) { return real(ceil(big(x))); }
Real sqrt(const Real& x) { return real(sqrt(big(x))); }
Real exp(const Real& x) { return real(exp(big(x))); }
Real log(const Real& x) { return real(log(big(x))); }
Real pow(const Real& x, const Real& y) { return real(pow(big(x), big(y))); }
Real ldexp(const Real& x, int exponent) { return real(ldexp(big(x), exponent)); }

const Real& two_pi() {
  // 448 bits, 445 of them after the point. Boost's own constant brings a parser, sin, acos and 1200 bits to a page.
  static const Real value = [] {
    constexpr std::uint64_t kWords[] = {0x302b0a6df25f1437, 0xef9519b3cd3a431b, 0x514a08798e3404dd,
                                        0x020bbea63b139b22, 0x29024e088a67cc74, 0xc4c6628b80dc1cd1,
                                        0xc90fdaa22168c234};
    Real sum = 0;
    int exponent = -445;
    for (const std::uint64_t word : kWords) {
      sum += ldexp(Real(word), exponent);
      exponent += 64;
    }
    return sum;
  }();
  return value;
}

namespace {

// The bits of a number, in words, lowest first: |x| = words · 2^(exponent − precision + 1).
struct Bits {
  static constexpr int kWords = 8, kBits = 64;
  std::array<std::uint64_t, kWords> words{};

  explicit Bits(const Big& x) {
    const auto& bits = x.backend().bits();
    constexpr std::size_t kLimbs = kBits / (8 * sizeof(boost::multiprecision::limb_type));
    for (std::size_t i = 0; i < bits.size() && i / kLimbs < kWords; ++i) {
      words[i / kLimbs] |= static_cast<std::uint64_t>(bits.limbs()[i]) << (i % kLimbs * (kBits / kLimbs));
    }
  }
  /// 64 bits from bit `first` on, which may be below 0: zeros.
  std::uint64_t from(int first) const {
    if (first <= -kBits || first >= kWords * kBits) return 0;
    if (first < 0) return words[0] << -first;
    const auto at = static_cast<std::size_t>(first / kBits);
    const int rest = first % kBits;
    if (rest == 0) return words[at];
    const std::uint64_t above = at + 1 < kWords ? words[at + 1] << (kBits - rest) : 0;
    return words[at] >> rest | above;
  }
};

// Rounds turns to a 256-bit fraction, by their bits.
Frequency frequency_from_real_turns(const Real& turns) {
  constexpr int kFraction = 256, kPrecision = 400;
  Frequency frequency;
  if (turns == 0) return frequency;
  const Bits bits(big(turns));
  const int shift = static_cast<int>(big(turns).backend().exponent()) - (kPrecision - 1) + kFraction;
  std::uint64_t carry = bits.from(-shift - 1) & 1;  // the first bit that is cut off: rounds to nearest
  for (std::size_t word = 0; word < 4; ++word) {
    frequency.words[word] = bits.from(64 * static_cast<int>(word) - shift) + carry;
    carry = carry != 0 && frequency.words[word] == 0 ? 1 : 0;
  }
  return turns < 0 ? opposite(frequency) : frequency;
}

// base^(−1/n) by Newton's method, r += r · (1 − base · r^n) / n, from what the machine's own arithmetic finds: each step
// doubles the bits that are right. 0 where it does not come down to the last bits.
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
    if (abs(error) < ldexp(Real(1), -200)) return root;  // and now twice as many
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
  values.reserve(static_cast<std::size_t>(count));
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

float nearest_float(const Real& value) { return value.convert_to<float>(); }

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
