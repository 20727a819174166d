#include "diagnosis/waves.h"

#include <cmath>

#include "posenc/apply.h"

namespace posenc::diagnosis {
namespace {

// What was added at each token, the mean over heads: [sequence, features].
std::vector<double> additions_of(const Samples& samples) {
  std::vector<double> added(static_cast<std::size_t>(samples.sequence * samples.features));
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    added[i % added.size()] += (samples.after[i] - samples.before[i]) / static_cast<double>(samples.heads);
  }
  return added;
}

}  // namespace

std::optional<Convention> added_waves(const Samples& samples) {
  if (samples.features < 2 || samples.axes.size() > 1) return std::nullopt;
  const std::vector<double> added = additions_of(samples);
  const std::int64_t last = samples.last_position();
  if (last > 100'000) return std::nullopt;
  // what heads do not share is no addition
  double apart = 0, change = 0;
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    const double own = samples.after[i] - samples.before[i];
    apart += (own - added[i % added.size()]) * (own - added[i % added.size()]);
    change += own * own;
  }
  const double room = 16 * samples.rounding * samples.rounding * (samples.energy + change);
  if (apart > room + 1e-3 * change) return std::nullopt;

  constexpr std::int64_t kStarts = 130;
  std::optional<Convention> best;
  for (const Spacing spacing : {Spacing::kPaper, Spacing::kInclusive}) {
    for (const WaveLayout layout : {WaveLayout::kInterleaved, WaveLayout::kSinCos, WaveLayout::kCosSin}) {
      const Sinusoidal scheme{.width = samples.features,
                              .spacing = spacing,
                              .layout = layout,
                              .odd = samples.features % 2 == 0 ? OddWidth::kRefuse : OddWidth::kZero};
      std::vector<double> table(static_cast<std::size_t>((last + kStarts) * samples.features));
      tabulate(view(table.data(), {last + kStarts, samples.features}), {}, prepare(scheme));
      for (std::int64_t first = 0; first < kStarts; ++first) {
        double product = 0, square = 0;
        for (std::int64_t s = 0; s < samples.sequence; ++s) {
          const auto row = static_cast<std::size_t>(
              (samples.axes.front().positions[static_cast<std::size_t>(s)] + first) * samples.features);
          for (std::int64_t i = 0; i < samples.features; ++i) {
            const double value = table[row + static_cast<std::size_t>(i)];
            product += value * added[static_cast<std::size_t>(s * samples.features + i)];
            square += value * value;
          }
        }
        if (product <= 0) continue;
        const double scale = product / square;
        const double left = std::max(0.0, change - static_cast<double>(samples.heads) * product * product / square);
        const double residual = std::sqrt(left / samples.energy);
        if (best && residual >= best->residual) continue;
        Sinusoidal found = scheme;
        found.scale = std::fabs(scale - 1) < 30 * samples.rounding ? 1.0 : scale;
        best = Convention{.scheme = found, .magnitude = scale, .first_position = first, .residual = residual};
      }
    }
  }
  return best;
}

}  // namespace posenc::diagnosis
