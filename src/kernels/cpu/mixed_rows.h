#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/double_rows.h"
#include "kernels/rotation_element.h"

namespace posenc::kernels::cpu {

/// Cosines and sines of a mixture, with the bytes of the reference: sums in double of waves that are correctly rounded to
/// double, rounded to W. Such waves are slow (DoubleRows). For float32, the sums are therefore first computed from waves
/// with an error of 2^-52, and again from rounded ones if that error could change a result, which is rare.
template <class W> class MixedRows {
 public:
  struct Scratch {
    AlignedVector<double> waves;  // [cosines | sines]
    std::vector<double> sums;     // of mix_waves
  };

  MixedRows(const Rotation& form, const Mixture& mixture, const Waves& waves, const TokenPositions& positions,
            std::int64_t tokens)
      : form_(form), mixture_(mixture), waves_(waves), positions_(positions), exact_(waves, positions, tokens) {
    constexpr std::int64_t kFewest = 8;  // finding the bounds takes as long as mixing the waves of one token
    if (std::is_same_v<W, float> && tokens >= kFewest) find_bounds();
  }
  void resize(Scratch& scratch) const {
    scratch.waves.resize(waves_.columns.size());
    scratch.sums.resize(2 * mixture_.pairs);
  }

  /// The row of a token: [cosines | sines] for each head.
  void make(std::int64_t b, std::int64_t t, W* row, Scratch& scratch, Outcome& outcome) const {
    if (!bounds_.empty()) {
      const std::size_t count = waves_.waves.size();
      for (std::size_t i = 0; i < count; ++i) {
        const auto unit = numerics::sine_cosine(numerics::reduce(angle_of(waves_, i, positions_, b, t)));
        scratch.waves[i] = unit.cosine;
        scratch.waves[count + i] = unit.sine;
      }
      if (mix(row, scratch)) return;
    }
    DoubleRows::Anchor none;
    exact_.make(b, t, t + 1, scratch.waves.data(), 0, none, outcome);
    mix(row, scratch);
  }

 private:
  // Let A = |offset| + Σ |weight| of a sum of n products. Waves from sine_cosine and correctly rounded ones differ by
  // 1.25 · 2^-52 at most, which changes the sum by as much of A. Its roundings add 2^-53 of A for the products and for
  // each of n additions, once in either sum. Together that is less than (n + 3) · 2^-52 · A; underflow is far below float32.
  void find_bounds() {
    const auto count = static_cast<std::int64_t>(waves_.waves.size()), mixed = mixture_.mixed;
    const auto add_bounds = [&](std::int64_t h, const std::vector<double>& weights,
                                const std::vector<double>& offsets) {
      const std::size_t first = bounds_.size();
      for (std::int64_t j = 0; j < mixed; ++j) {
        bounds_.push_back(offsets.empty() ? 0.0 : std::fabs(offsets[j]));
      }
      double* const sums = bounds_.data() + first;
      for (std::int64_t i = 0; i < count; ++i) {
        const double* const row = weights.data() + (h * count + i) * mixed;
        for (std::int64_t j = 0; j < mixed; ++j) sums[j] += std::fabs(row[j]);
      }
      for (std::int64_t j = 0; j < mixed; ++j) sums[j] *= static_cast<double>(count + 4) * 0x1p-52;
    };
    bounds_.reserve(mixture_.heads * 2 * mixed);
    for (std::int64_t h = 0; h < mixture_.heads; ++h) {
      add_bounds(h, mixture_.cosines, mixture_.cosine_offsets);
      add_bounds(h, mixture_.sines, mixture_.sine_offsets);
    }
  }

  // Returns false if a value could be another one within the bounds. Rounding is monotone: if both ends of an interval
  // have the same result, every sum in between has it.
  bool mix(W* row, Scratch& scratch) const {
    const std::int64_t pairs = mixture_.pairs, count = bounds_.empty() ? 0 : 2 * mixture_.mixed;
    const auto bits = [factor = form_.magnitude](double sum) {
      return std::bit_cast<std::uint32_t>(static_cast<float>(factor * sum));
    };
    std::uint32_t differs = 0;
    for (std::int64_t h = 0; h < mixture_.heads; ++h) {
      W* const cosines = row + h * 2 * pairs;
      mix_waves(form_, mixture_, h, scratch.waves.data(), cosines, cosines + pairs, scratch.sums);
      const double *const sums = scratch.sums.data(), *const bounds = bounds_.data() + h * count;
      for (std::int64_t j = 0; j < count; ++j) differs |= bits(sums[j] - bounds[j]) ^ bits(sums[j] + bounds[j]);
    }
    return differs == 0;
  }

  const Rotation& form_;
  const Mixture& mixture_;
  const Waves& waves_;
  const TokenPositions& positions_;
  DoubleRows exact_;
  AlignedVector<double> bounds_;  // [heads][cosines | sines][mixed]; empty: every wave is rounded
};

}  // namespace posenc::kernels::cpu
