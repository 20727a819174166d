#include "oracle/mpfr_wave.h"

#include <mpfr.h>

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace posenc::oracle {
namespace {

constexpr mpfr_prec_t kBits = 500;

class Number {
 public:
  explicit Number(mpfr_prec_t bits = kBits) { mpfr_init2(value_, bits); }
  ~Number() { mpfr_clear(value_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  operator mpfr_ptr() { return value_; }

 private:
  mpfr_t value_;
};

void set_radians(Number& radians, const MpfrFrequency& frequency) {
  Number exponent;
  mpfr_set_d(radians, frequency.base, MPFR_RNDN);
  mpfr_set_si(exponent, -frequency.numerator, MPFR_RNDN);
  mpfr_div_si(exponent, exponent, frequency.denominator, MPFR_RNDN);
  mpfr_pow(radians, radians, exponent, MPFR_RNDN);
}

void wave(Number& out, Number& angle, unsigned quarter, double scale) {
  switch (quarter & 3) {
    case 0:
      mpfr_sin(out, angle, MPFR_RNDN);
      break;
    case 1:
      mpfr_cos(out, angle, MPFR_RNDN);
      break;
    case 2:
      mpfr_sin(out, angle, MPFR_RNDN);
      mpfr_neg(out, out, MPFR_RNDN);
      break;
    default:
      mpfr_cos(out, angle, MPFR_RNDN);
      mpfr_neg(out, out, MPFR_RNDN);
      break;
  }
  mpfr_mul_d(out, out, scale, MPFR_RNDN);
}

double rounded(Number& exact, Precision precision) {
  if (mpfr_zero_p(static_cast<mpfr_ptr>(exact)) != 0) return 0.0;
  const long room = mpfr_get_exp(static_cast<mpfr_ptr>(exact)) - precision.least_exponent;
  if (room < 1) {  // below the smallest number: it or zero
    Number half;
    mpfr_set_ui_2exp(half, 1, precision.least_exponent - 1, MPFR_RNDN);
    const double size = mpfr_cmpabs(exact, half) > 0 ? std::ldexp(1.0, precision.least_exponent) : 0.0;
    return mpfr_signbit(static_cast<mpfr_ptr>(exact)) != 0 ? -size : size;
  }
  mpfr_t result;
  mpfr_init2(result, room < precision.bits ? room : precision.bits);
  mpfr_set(result, exact, MPFR_RNDN);
  const double value = mpfr_get_d(result, MPFR_RNDN);
  mpfr_clear(result);
  return value;
}

void set_wave(Number& out, const MpfrFrequency& frequency, std::uint64_t position, unsigned quarter, double scale) {
  Number angle;
  set_radians(angle, frequency);
  mpfr_mul_ui(angle, angle, position, MPFR_RNDN);
  wave(out, angle, quarter, scale);
}

}  // namespace

double mpfr_wave(const MpfrFrequency& frequency, std::uint64_t position, unsigned quarter, double scale,
                 Precision precision) {
  Number exact;
  set_wave(exact, frequency, position, quarter, scale);
  return rounded(exact, precision);
}

double mpfr_wave_at_fraction(const MpfrFrequency& frequency, bool turns, std::int64_t numerator,
                             std::int64_t denominator, unsigned quarter, Precision precision) {
  Number angle, exact;
  set_radians(angle, frequency);
  if (turns) {
    Number two_pi;
    mpfr_const_pi(two_pi, MPFR_RNDN);
    mpfr_mul_2ui(two_pi, two_pi, 1, MPFR_RNDN);
    mpfr_mul(angle, angle, two_pi, MPFR_RNDN);
  }
  mpfr_mul_si(angle, angle, static_cast<long>(numerator), MPFR_RNDN);
  mpfr_div_si(angle, angle, static_cast<long>(denominator), MPFR_RNDN);
  wave(exact, angle, quarter, 1.0);
  return rounded(exact, precision);
}

double mpfr_wave_of_radians(double radians, unsigned quarter, double scale, Precision precision) {
  Number angle, exact;
  mpfr_set_d(angle, radians, MPFR_RNDN);
  wave(exact, angle, quarter, scale);
  return rounded(exact, precision);
}

double mpfr_wave_of_sum(const std::vector<double>& radians, const std::vector<std::int64_t>& positions,
                        unsigned quarter, Precision precision) {
  Number angle, term, exact;
  mpfr_set_si(angle, 0, MPFR_RNDN);
  for (std::size_t i = 0; i < radians.size(); ++i) {
    mpfr_set_d(term, radians[i], MPFR_RNDN);
    mpfr_mul_si(term, term, static_cast<long>(positions[i]), MPFR_RNDN);
    mpfr_add(angle, angle, term, MPFR_RNDN);
  }
  wave(exact, angle, quarter, 1.0);
  return rounded(exact, precision);
}

double mpfr_error_in_ulps(double got, const MpfrFrequency& frequency, std::uint64_t position, unsigned quarter,
                          double scale, Precision precision) {
  Number exact;
  set_wave(exact, frequency, position, quarter, scale);
  if (mpfr_zero_p(static_cast<mpfr_ptr>(exact)) != 0) return got == 0 ? 0.0 : HUGE_VAL;
  long last = mpfr_get_exp(static_cast<mpfr_ptr>(exact)) - precision.bits;
  if (last < precision.least_exponent) last = precision.least_exponent;
  mpfr_sub_d(exact, exact, got, MPFR_RNDN);
  mpfr_div_2si(exact, exact, last, MPFR_RNDN);
  return std::fabs(mpfr_get_d(exact, MPFR_RNDN));
}

void mpfr_turns(const MpfrFrequency& frequency, std::uint64_t words[4]) {
  Number turns, pi;
  set_radians(turns, frequency);
  mpfr_const_pi(pi, MPFR_RNDN);
  mpfr_div(turns, turns, pi, MPFR_RNDN);
  mpfr_div_2ui(turns, turns, 1, MPFR_RNDN);
  mpfr_frac(turns, turns, MPFR_RNDN);
  mpfr_mul_2ui(turns, turns, 256, MPFR_RNDN);
  mpfr_rint(turns, turns, MPFR_RNDN);
  for (int word = 0; word < 4; ++word) {
    Number low, high;
    mpfr_div_2ui(high, turns, 64, MPFR_RNDN);
    mpfr_floor(high, high);
    mpfr_mul_2ui(low, high, 64, MPFR_RNDN);
    mpfr_sub(low, turns, low, MPFR_RNDN);
    words[word] = mpfr_get_uj(low, MPFR_RNDN);
    mpfr_set(turns, high, MPFR_RNDN);
  }
}

struct MpfrWaves::Numbers {
  std::vector<std::unique_ptr<Number>> radians;
};

MpfrWaves::MpfrWaves(double base, long width) : numbers_(std::make_unique<Numbers>()) {
  for (long pair = 0; pair < (width + 1) / 2; ++pair) {
    auto radians = std::make_unique<Number>(320);
    set_radians(*radians, {base, 2 * pair, width});
    numbers_->radians.push_back(std::move(radians));
  }
}

MpfrWaves::~MpfrWaves() = default;

double MpfrWaves::wave(long pair, std::uint64_t position, unsigned quarter, Precision precision) const {
  Number angle(320), exact(128);
  mpfr_mul_ui(angle, *numbers_->radians[static_cast<std::size_t>(pair)], position, MPFR_RNDN);
  oracle::wave(exact, angle, quarter, 1.0);
  return rounded(exact, precision);
}

}  // namespace posenc::oracle
