#include "diagnosis/structure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace posenc::diagnosis {
namespace {

constexpr std::array kLayouts = {PairLayout::kHalves, PairLayout::kInterleaved, PairLayout::kInterleavedToHalves,
                                 PairLayout::kHalvesToInterleaved};

// Σ (after − before)² of each feature.
std::vector<double> changes_of(const Samples& samples) {
  std::vector<double> changes(samples.features);
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    const double change = samples.after[i] - samples.before[i];
    changes[i % changes.size()] += change * change;
  }
  return changes;
}

// The energy in one feature that rounding alone may account for.
double rounding_energy(const Samples& samples) {
  return 16 * samples.rounding * samples.rounding * samples.energy / static_cast<double>(samples.features);
}

// Block sizes worth trying: any if the pairs are far apart, because they must fit; if pairs are neighbours, only
// common sizes, because a longer block with slow pairs at its end cannot be distinguished.
std::set<std::int64_t> sizes_of(const Samples& samples, PairLayout layout, std::int64_t last_changed) {
  std::set<std::int64_t> sizes;
  const std::int64_t most = samples.features / 2 * 2;
  if (layout != PairLayout::kInterleaved) {
    for (std::int64_t dims = 2; dims <= most; dims += 2) sizes.insert(dims);
    return sizes;
  }
  for (const std::int64_t dims : {most, most / 2, most / 4, most * 3 / 4, std::int64_t{32}, std::int64_t{64},
                                  std::int64_t{96}, std::int64_t{128}, last_changed + 1, last_changed + 2}) {
    if (dims >= 2 && dims <= most && dims % 2 == 0) sizes.insert(dims);
  }
  return sizes;
}

}  // namespace

Place place_of(PairLayout layout, std::int64_t dims, std::int64_t first, std::int64_t pair) {
  const PairPlacement placement = placement_of(layout, dims / 2);
  const std::int64_t read = first + pair * placement.read.step, write = first + pair * placement.write.step;
  return {read, read + placement.read.apart, write, write + placement.write.apart};
}

std::vector<Structure> structures_of(const Samples& samples) {
  const std::vector<double> changes = changes_of(samples);
  const double quiet = rounding_energy(samples);
  std::int64_t first_changed = 0, last_changed = samples.features - 1;
  while (first_changed < last_changed && changes[first_changed] <= quiet) ++first_changed;
  while (last_changed > first_changed && changes[last_changed] <= quiet) --last_changed;
  double total_change = 0;
  for (const double change : changes) total_change += change;
  const double span = samples.span();

  std::vector<Structure> found;
  for (const PairLayout layout : kLayouts) {
    for (const std::int64_t dims : sizes_of(samples, layout, last_changed)) {
      for (const std::int64_t first :
           std::set<std::int64_t>{0, samples.features - dims, first_changed, first_changed / 2 * 2}) {
        if (first < 0 || first + dims > samples.features || first > first_changed) continue;
        Structure one{.layout = layout, .dims = dims, .first = first};
        for (std::int64_t i = 0; i < samples.features; ++i) {
          if (i < first || i >= first + dims) one.outside += changes[i];
        }
        if (one.outside > kLoose * total_change + quiet) continue;
        // the fastest pair decides whether to try the others
        const PairStatistics fastest = statistics_of(samples, place_of(layout, dims, first, 0));
        const PairFit fit = fit_pair(fastest, samples);
        if (fit.unexplained > 4 * kLoose * fit.energy || !fit.rotates(span)) continue;
        found.push_back(std::move(one));
      }
    }
  }
  // neighbours are the same pairs in a block of any size
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<PairStatistics, PairFit>> neighbours;
  for (Structure& one : found) {
    one.unexplained = one.outside;
    for (std::int64_t pair = 0; pair < one.dims / 2; ++pair) {
      const Place place = place_of(one.layout, one.dims, one.first, pair);
      const bool is_shared = one.layout == PairLayout::kInterleaved;
      const auto known = neighbours.find({place.read_a, place.read_b});
      if (is_shared && known != neighbours.end()) {
        one.pairs.push_back(known->second.first);
        one.fits.push_back(known->second.second);
      } else {
        one.pairs.push_back(statistics_of(samples, place));
        one.fits.push_back(fit_pair(one.pairs.back(), samples));
        if (is_shared) neighbours[{place.read_a, place.read_b}] = {one.pairs.back(), one.fits.back()};
      }
      one.unexplained += one.fits.back().unexplained;
      one.energy += one.fits.back().energy;
      const bool is_kept = place.read_a == place.write_a && place.read_b == place.write_b;
      one.still.push_back(is_kept && changes[place.read_a] == 0 && changes[place.read_b] == 0);
      if (one.unexplained > 4 * kLoose * samples.energy) break;
    }
  }
  std::erase_if(found, [&](const Structure& one) { return one.unexplained > 4 * kLoose * samples.energy; });
  return found;
}

}  // namespace posenc::diagnosis
