#include "schemes/scalings/scaling.h"

namespace posenc {
namespace {

template <class N> schemes::Scaled<N> llama3(const Llama3Scaling& scaling, const schemes::Spectrum<N>& from) {
  schemes::check_positive(scaling.name, "factor", scaling.factor);
  schemes::check_original_length(scaling.name, scaling.original_length);
  schemes::check_positive(scaling.name, "low_freq_factor", scaling.low_freq_factor);
  schemes::check_positive(scaling.name, "high_freq_factor", scaling.high_freq_factor);
  if (scaling.low_freq_factor > scaling.high_freq_factor) {
    raise(fmt::format(
        "rope: low_freq_factor of scaling llama3 must be at most high_freq_factor, but they are {} and {}",
        scaling.low_freq_factor, scaling.high_freq_factor));
  }
  const schemes::Real trained = static_cast<double>(scaling.original_length);
  const N longest = schemes::as<N>(trained / scaling.low_freq_factor);
  const N shortest = schemes::as<N>(trained / scaling.high_freq_factor);
  const N factor = N(scaling.factor), low = N(scaling.low_freq_factor);
  const N span = schemes::as<N>(schemes::Real(scaling.high_freq_factor) - scaling.low_freq_factor);

  schemes::Scaled<N> to;
  to.frequencies = schemes::inverse_periods<N>(from.base, from.dims);
  for (N& frequency : to.frequencies) {
    const N wavelength = schemes::as<N>(numerics::two_pi()) / frequency;
    if (wavelength < shortest) continue;
    if (wavelength > longest || span == N(0)) {  // Llama 4 Scout: no ramp
      frequency /= factor;
      continue;
    }
    const N smooth = (schemes::as<N>(trained) / wavelength - low) / span;
    frequency = (N(1) - smooth) * frequency / factor + smooth * frequency;
  }
  return to;
}

}  // namespace

POSENC_SCALING(Llama3Scaling, llama3)

}  // namespace posenc
