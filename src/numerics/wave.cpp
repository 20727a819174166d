#include "numerics/wave-inl.h"

namespace posenc::numerics {

template bool round_wave_by_integers(float&, const Angle&, unsigned, double) noexcept;
template bool round_wave_by_integers(double&, const Angle&, unsigned, double) noexcept;
template bool round_wave_by_integers(Half&, const Angle&, unsigned, double) noexcept;
template bool round_wave_by_integers(BFloat16&, const Angle&, unsigned, double) noexcept;
template bool round_wave(float&, const Angle&, const Reduced&, unsigned, double) noexcept;
template bool round_wave(double&, const Angle&, const Reduced&, unsigned, double) noexcept;
template bool round_wave(Half&, const Angle&, const Reduced&, unsigned, double) noexcept;
template bool round_wave(BFloat16&, const Angle&, const Reduced&, unsigned, double) noexcept;

}  // namespace posenc::numerics
