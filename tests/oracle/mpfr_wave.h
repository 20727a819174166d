#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace posenc::oracle {

/// A floating-point format: significant bits, exponent of the last bit of its smallest number.
struct Precision {
  int bits;
  int least_exponent;
};
inline constexpr Precision kF32{24, -149}, kF64{53, -1074}, kF16{11, -24}, kBF16{8, -133};

/// base^(−numerator/denominator) radians per position, by MPFR at 500 bits.
struct MpfrFrequency {
  double base;
  long numerator;
  long denominator;
};

/// scale · sin(position·frequency + quarter·π/2), rounded once to the format (to nearest, ties to even), as a double.
double mpfr_wave(const MpfrFrequency& frequency, std::uint64_t position, unsigned quarter, double scale,
                 Precision precision);

/// The same at the position numerator / denominator; `turns`: the frequency is in turns, not in radians.
double mpfr_wave_at_fraction(const MpfrFrequency& frequency, bool turns, std::int64_t numerator,
                             std::int64_t denominator, unsigned quarter, Precision precision);

/// scale · sin(radians + quarter·π/2), rounded the same way.
double mpfr_wave_of_radians(double radians, unsigned quarter, double scale, Precision precision);

/// sin(Σ radians[i] · positions[i] + quarter·π/2), rounded the same way.
double mpfr_wave_of_sum(const std::vector<double>& radians, const std::vector<std::int64_t>& positions,
                        unsigned quarter, Precision precision);

/// The same for many values of one set of frequencies, base^(−2·pair/width): frequencies are made once, to 320 bits,
/// and sines to 128 bits before they are rounded to the format.
class MpfrWaves {
 public:
  MpfrWaves(double base, long width);
  ~MpfrWaves();
  MpfrWaves(const MpfrWaves&) = delete;
  MpfrWaves& operator=(const MpfrWaves&) = delete;
  double wave(long pair, std::uint64_t position, unsigned quarter, Precision precision) const;

 private:
  struct Numbers;
  std::unique_ptr<Numbers> numbers_;
};

/// |got − exact| in units in the last place of the exact value, for the same value.
double mpfr_error_in_ulps(double got, const MpfrFrequency& frequency, std::uint64_t position, unsigned quarter,
                          double scale, Precision precision);

/// base^(−numerator/denominator) and 1/(2π) of it as 256-bit fractions of a turn, least significant word first.
void mpfr_turns(const MpfrFrequency& frequency, std::uint64_t words[4]);

}  // namespace posenc::oracle
