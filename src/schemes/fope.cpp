#include "posenc/schemes/fope.h"

#include <algorithm>

#include "numerics/real.h"
#include "schemes/check.h"
#include "schemes/table_values.h"

namespace posenc {
namespace {

using numerics::Real;

constexpr std::int64_t kMostMixedDims = 65536, kMostCoefficients = std::int64_t{1} << 24;

void check_fope(const Fope& s) {
  schemes::check_between(Fope::name, "heads", s.heads, 1, schemes::kHeadLimit);
  schemes::check_between(Fope::name, "dims", s.dims, 4, kMostMixedDims);
  if (s.dims % 4 != 0) raise(fmt::format("fope: dims must be a multiple of 4 but is {}", s.dims));
  schemes::check_between(Fope::name, "spectrum", s.spectrum, 0, kMostMixedDims);
  if (s.spectrum % 2 != 0) raise(fmt::format("fope: spectrum must be even but is {}", s.spectrum));
  schemes::check_between(Fope::name, "length", s.length, 1, kPositionLimit);
  if (!(s.base > 1.0 && s.base <= 1e36)) {
    raise(fmt::format("fope: base must be above 1 and at most 1e36 but is {}", s.base));
  }
}

// The frequencies that complete a turn within the trained length, fastest first.
std::vector<Real> kept_frequencies(const Fope& s) {
  const std::int64_t features = std::max(s.dims, s.spectrum);
  std::vector<Real> all = numerics::geometric(s.base, Real(2) / features, features / 2);
  const Real slowest = numerics::two_pi() / s.length;
  all.erase(std::find_if(all.begin(), all.end(), [&](const Real& one) { return one < slowest; }), all.end());
  return all;
}

std::int64_t mixed_pairs(const Fope& s, std::int64_t waves) { return std::min(waves, s.dims / 4); }

// One wave for each pair: every ⌈n / pairs⌉-th of n waves.
std::vector<double> identity(std::int64_t heads, std::int64_t waves, std::int64_t pairs) {
  std::vector<double> weights(heads * waves * pairs);
  const std::int64_t step = pairs > 0 ? (waves + pairs - 1) / pairs : 1;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t j = 0; j < pairs && j * step < waves; ++j) {
      weights[(head * waves + j * step) * pairs + j] = 1;
    }
  }
  return weights;
}

}  // namespace

TrainedTable Fope::trained_table() const {
  check_fope(*this);
  const auto waves = std::ssize(kept_frequencies(*this));
  return {
      .axes = {{"sines and cosines", 2}, {"heads", heads}, {"waves", waves}, {"pairs", mixed_pairs(*this, waves)}},
      .is_optional = true};
}

Rotation prepare(const Fope& s, const PrepareOptions& options) {
  check_fope(s);
  if (options.numerics != Numerics::kExact) {
    raise(fmt::format("fope: {} is not available: waves are mixed in double", name_of(options.numerics)));
  }
  Rotation rotation;
  for (const Real& radians : kept_frequencies(s)) rotation.frequencies.push_back(numerics::frequency_from(radians));
  const auto waves = std::ssize(rotation.frequencies);
  const std::int64_t mixed = mixed_pairs(s, waves), count = s.heads * waves * mixed;
  if (count > kMostCoefficients) {
    raise(
        fmt::format("fope: {} heads, {} waves and {} pairs have more than 2^24 coefficients", s.heads, waves, mixed));
  }
  Mixture mixture;
  mixture.heads = s.heads;
  mixture.pairs = s.dims / 2;
  mixture.mixed = mixed;
  if (options.weights.data == nullptr) {
    mixture.cosines = mixture.sines = identity(s.heads, waves, mixed);
  } else {
    const std::vector<double> given = schemes::table_values(
        Fope::name, schemes::table_of_shape(Fope::name, options.weights, shape_of(s.trained_table())));
    mixture.sines.assign(given.begin(), given.begin() + count);
    mixture.cosines.assign(given.begin() + count, given.end());
    for (const double one : given) schemes::check_finite(Fope::name, "a coefficient", one);
  }
  // the value that the published code pads with
  mixture.cosine_offsets.assign(mixture.pairs, 1.0);
  std::fill_n(mixture.cosine_offsets.begin(), mixed, 0.0);
  mixture.sine_offsets = mixture.cosine_offsets;
  rotation.source = std::move(mixture);
  rotation.layout = s.layout;
  rotation.precision = options.precision;
  return rotation;
}

}  // namespace posenc
