#include "numerics/real.h"

#include <boost/math/constants/constants.hpp>
#include <cmath>
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

const Real& two_pi() {
  static const Real value = boost::math::constants::two_pi<Real>();
  return value;
}

namespace {

// Rounds turns to a 256-bit fraction, 64 bits at a time from the top.
Frequency frequency_from_real_turns(const Real& turns) {
  Real rest = abs(turns);
  rest -= floor(rest);
  rest += ldexp(Real(1), -257);  // so that cutting at 2^-256 rounds to nearest
  if (rest >= 1) rest -= 1;
  Frequency frequency;
  for (std::size_t word = 4; word-- > 0;) {
    rest = ldexp(rest, 64);
    const Real whole = floor(rest);
    frequency.words[word] = whole.convert_to<std::uint64_t>();
    rest -= whole;
  }
  return turns < 0 ? opposite(frequency) : frequency;
}

void check_range(double value, const char* what) {
  const double magnitude = std::fabs(value);
  if (value == 0 || (magnitude >= 0x1p-136 && magnitude <= 0x1p100)) return;
  raise(std::string("frequency: ") + what + " must be 0 or between 2^-136 and 2^100 in size but is " +
        std::to_string(value));
}

}  // namespace

Frequency frequency_from(const Real& radians) { return frequency_from_real_turns(radians / two_pi()); }

std::vector<Real> geometric(const Real& base, const Real& step, std::int64_t count) {
  const Real ratio = pow(base, -step);
  std::vector<Real> values;
  values.reserve(static_cast<std::size_t>(count));
  Real value = 1;
  for (std::int64_t k = 0; k < count; ++k) {
    values.push_back(value);
    value *= ratio;
  }
  return values;
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
