#include "posenc/schemes/sandwich.h"

#include "numerics/real.h"
#include "numerics/wave.h"
#include "schemes/check.h"
#include "schemes/distance_table.h"

namespace posenc {
namespace {

void check(const Sandwich& s) {
  schemes::check_between(Sandwich::name, "heads", s.heads, 1, schemes::kHeadLimit);
  schemes::check_between(Sandwich::name, "dims", s.dims, 2, schemes::kWidthLimit);
  if (s.dims % 2 != 0) raise(fmt::format("sandwich: dims must be even but is {}", s.dims));
  if (!(s.base >= 1.0 && s.base <= 1e36)) {
    raise(fmt::format("sandwich: base must be between 1 and 1e36 but is {}", s.base));
  }
}

}  // namespace

Bias prepare(const Sandwich& s, const PrepareOptions& options) {
  check(s);
  schemes::check_table_length(Sandwich::name, options.length);
  std::vector<Frequency> frequencies;
  for (const numerics::Real& radians : numerics::geometric(s.base, numerics::Real(2) / s.dims, s.dims / 2)) {
    frequencies.push_back(numerics::frequency_from(radians));
  }
  const auto fill = [&](std::int64_t distance, double* row) {
    double sum = 0;
    for (const Frequency& frequency : frequencies) {
      double cosine = 1;
      if (!numerics::round_wave_by_integers(cosine, {frequency, static_cast<std::uint64_t>(distance)}, 1, 1.0)) {
        raise(fmt::format("sandwich: a cosine at distance {} cannot be rounded with 128 bits", distance));
      }
      sum += cosine;
    }
    for (std::int64_t h = 0; h < s.heads; ++h) {
      row[h] = sum * static_cast<double>(s.heads) / static_cast<double>(8 * (h + 1));
    }
  };
  return {s.heads, schemes::table_by_distance(Sandwich::name, options.length, s.heads, fill)};
}

}  // namespace posenc
