#include "numerics/wave-inl.h"

#include <cmath>

namespace posenc::numerics {

template bool round_wave_by_integers(float&, const Angle&, unsigned, double) noexcept;
template bool round_wave_by_integers(double&, const Angle&, unsigned, double) noexcept;
template bool round_wave_by_integers(Half&, const Angle&, unsigned, double) noexcept;
template bool round_wave_by_integers(BFloat16&, const Angle&, unsigned, double) noexcept;
template bool round_wave(float&, const Angle&, const Reduced&, unsigned, double) noexcept;
template bool round_wave(double&, const Angle&, const Reduced&, unsigned, double) noexcept;
template bool round_wave(Half&, const Angle&, const Reduced&, unsigned, double) noexcept;
template bool round_wave(BFloat16&, const Angle&, const Reduced&, unsigned, double) noexcept;

// Of the mantissa's 128 bits, 53 go to the first double and 53 to the second, each rounded to nearest: 2^-106. Using
// 1 − 2^-128 for a cosine of less than 2^-54 turns costs less than 2^-103.6, which is 5.3 · 2^-106.
DoubleDouble wave_in_double_double(const Angle& angle, unsigned quarter) noexcept {
  const detail::SignedWave wave = detail::by_integers(angle, quarter);
  if (wave.is_zero) return {};
  const auto top = static_cast<std::int64_t>(wave.size.mantissa >> 75);
  const auto next = static_cast<std::int64_t>(wave.size.mantissa >> 22 & ((std::uint64_t{1} << 53) - 1)) +
                    static_cast<std::int64_t>(wave.size.mantissa >> 21 & 1);
  const std::int64_t up = next > std::int64_t{1} << 52 ? 1 : 0;
  const double sign = wave.negative ? -1.0 : 1.0;
  return {sign * std::ldexp(static_cast<double>(top + up), wave.size.exponent + 75),
          sign * std::ldexp(static_cast<double>(next - (up << 53)), wave.size.exponent + 22)};
}

}  // namespace posenc::numerics
