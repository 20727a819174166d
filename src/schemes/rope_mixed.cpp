#include "posenc/schemes/rope_mixed.h"

#include "numerics/real.h"
#include "numerics/wave.h"
#include "schemes/check.h"
#include "schemes/table_values.h"

namespace posenc {
namespace {

using numerics::Real;

constexpr std::int64_t kMostMixedFrequencies = std::int64_t{1} << 24;

void check_mixed(const RopeMixed& s, const PrepareOptions& options) {
  schemes::check_between(RopeMixed::name, "heads", s.heads, 1, schemes::kHeadLimit);
  schemes::check_between(RopeMixed::name, "dims", s.dims, 4, schemes::kWidthLimit);
  if (s.dims % 4 != 0) raise(fmt::format("rope-mixed: dims must be a multiple of 4 but is {}", s.dims));
  if (s.heads * s.dims > kMostMixedFrequencies) {
    raise(fmt::format("rope-mixed: {} heads of {} dims have more than 2^24 frequencies", s.heads, s.dims));
  }
  if (!(s.base > 1.0 && s.base <= 1e36)) {
    raise(fmt::format("rope-mixed: base must be above 1 and at most 1e36 but is {}", s.base));
  }
  if (!s.directions.empty() && std::ssize(s.directions) != s.heads) {
    raise(fmt::format("rope-mixed: directions must be {}, one for each head, but are {}", s.heads,
                      s.directions.size()));
  }
  for (const double turn : s.directions) {
    if (!(turn >= -1 && turn <= 1)) {
      raise(fmt::format("rope-mixed: a direction must be from -1 to 1 turns but is {}", turn));
    }
  }
  if (options.numerics != Numerics::kExact) {
    raise(fmt::format("rope-mixed: {} is not available: two angles are added", name_of(options.numerics)));
  }
}

// The sine (quarter 0) or cosine (1) of the given number of turns, to 100 bits.
Real wave_of_turns(double turns, unsigned quarter) {
  const numerics::DoubleDouble wave = numerics::wave_in_double_double({frequency_from_turns(turns), 1}, quarter);
  return Real(wave.high) + Real(wave.low);
}

// [heads, pairs, 2]
std::vector<Real> frequencies_before_training(const RopeMixed& s) {
  const std::int64_t quarter = s.dims / 4;
  const std::vector<Real> sizes = numerics::geometric_roots(s.base, quarter, quarter);
  std::vector<Real> all;
  for (std::int64_t head = 0; head < s.heads; ++head) {
    const double turns =
        s.directions.empty() ? static_cast<double>(head) / static_cast<double>(s.heads) : s.directions[head];
    const Real sine = wave_of_turns(turns, 0), cosine = wave_of_turns(turns, 1);
    for (const bool is_across : {false, true}) {
      for (const Real& size : sizes) {
        all.push_back(size * (is_across ? -sine : cosine));
        all.push_back(size * (is_across ? cosine : sine));
      }
    }
  }
  return all;
}

// [heads, pairs, 2] from [2, heads, pairs].
std::vector<Real> trained_frequencies(const RopeMixed& s, const ConstTensorView& weights) {
  const Extents shape = shape_of(s.trained_table());
  const std::vector<double> given =
      schemes::table_values(RopeMixed::name, schemes::table_of_shape(RopeMixed::name, weights, shape));
  const std::size_t count = given.size() / 2;
  std::vector<Real> all;
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const double radians = given[i % 2 * count + i / 2];
    if (!(std::fabs(radians) <= 0x1p100)) {
      raise(fmt::format("rope-mixed: a frequency must be at most 2^100 but is {}", radians));
    }
    all.emplace_back(radians);
  }
  return all;
}

}  // namespace

TrainedTable RopeMixed::trained_table() const {
  return {.axes = {{"axes", 2}, {"heads", heads}, {"pairs", dims / 2}}, .is_optional = true};
}

Rotation prepare(const RopeMixed& s, const PrepareOptions& options) {
  check_mixed(s, options);
  const std::vector<Real> radians =
      options.weights.data == nullptr ? frequencies_before_training(s) : trained_frequencies(s, options.weights);
  const std::int64_t denominators[] = {schemes::denominator_of(RopeMixed::name, options, 0, 2),
                                       schemes::denominator_of(RopeMixed::name, options, 1, 2)};
  Rotation rotation;
  rotation.source = HeadWaves{s.heads};
  rotation.position_axes = 2;
  rotation.layout = s.layout;
  rotation.precision = options.precision;
  rotation.frequencies.reserve(radians.size());
  for (std::size_t i = 0; i < radians.size(); ++i) {
    rotation.frequencies.push_back(numerics::frequency_from(schemes::over(radians[i], denominators[i % 2])));
  }
  return rotation;
}

}  // namespace posenc
