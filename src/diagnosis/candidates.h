#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "diagnosis/structure.h"

namespace posenc::diagnosis {

/// What the frequencies of a structure imply about base and scaling, before any scheme is tried.
struct Spectrum {
  double sign = 1;
  double base = 0;          // of a geometric series through the fastest pairs
  double first = 1;         // frequency of pair 0: below 1 if positions are compressed
  double slowing = 1;       // how much slower than that series the slowest visible pair is
  double magnitude = 1;     // of all pairs
  double slowest_seen = 0;  // the smallest frequency distinguishable from 0, in radians
  int times = 1;            // 2: frequencies are twice a scheme's, as if it was applied twice
  bool grows = false;       // pairs grow or shrink with position (xPos)
};
Spectrum spectrum_of(const Structure& structure, const Samples& samples);

/// Rounded to the given number of significant digits.
double to_digits(double value, int digits);

/// Schemes that such a spectrum may come from, simplest first.
std::vector<Rope> unscaled_candidates(const Structure& structure, const Spectrum& spectrum, std::size_t axes);
/// Bases of published models, and whether a base is one of them.
std::span<const double> known_bases();
bool is_known_base(double base);
/// Bases that models use before context extension.
inline constexpr std::array kUsualBases = {10000.0, 500000.0, 1000000.0};
/// ntk scaling of a common base by an integer factor, which is simply a larger base.
struct NtkReading {
  double usual = 0, factor = 0;
  double base = 0;  // the resulting base
};
/// Those whose result is `base`, to within `within` of it.
std::vector<NtkReading> ntk_readings(double base, std::int64_t dims, double within);
std::vector<Rope> scaled_candidates(const Rope& unscaled, const Spectrum& spectrum);
/// A scheme with the measured frequencies, as divisors of a base of 10000; pairs too slow to be measured get that of
/// the last measured one.
Rope measured_candidate(const Structure& structure, const Spectrum& spectrum);

/// How well a scheme explains a structure: with the best magnitude, for tokens from `first` on.
struct Score {
  double unexplained = std::numeric_limits<double>::infinity();  // energy
  double magnitude = 1;
  double missed = 0;  // how many elements should have changed in pairs that did not change at all
};
struct Trial {
  const Rope* rope = nullptr;
  std::int64_t first = 0;
  AngleKind numerics = AngleKind::kExact;
  bool is_swapped = false;
  int times = 1;             // how often it was applied
  bool is_for_keys = false;  // xPos: growth is inverted
};
Score score(const Structure& structure, const Samples& samples, const Trial& trial);

/// The first position (or, if positions are known, the shift) that explains the phases best.
struct Start {
  std::int64_t first = 0;
  bool is_swapped = false;
};
/// With hints, found for a similar scheme, only those and starts near 0 are tried.
Start start_of(const Structure& structure, const Samples& samples, const Rope& rope, int times = 1,
               std::span<const Start> hints = {});

/// xPos with the measured growth, for tokens from `first` on; nothing if pairs do not grow that way.
struct XposReading {
  Rope rope;
  bool is_for_keys = false;
};
std::optional<XposReading> xpos_candidate(const Structure& structure, const Samples& samples, const Rope& plain,
                                          std::int64_t first);

/// The frequencies of a scheme in radians, sign included, for positions near these samples.
std::vector<double> frequencies_of(const Rope& rope);

}  // namespace posenc::diagnosis
