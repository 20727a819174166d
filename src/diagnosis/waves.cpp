#include "diagnosis/waves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>

#include "diagnosis/candidates.h"
#include "diagnosis/line.h"

namespace posenc::diagnosis {
namespace {

constexpr std::int64_t kLeastStart = -64, kMostStart = 131;

// A way to fill the columns: what is added in column j is sin(ω_j·p + quarter_j·π/2).
struct Way {
  Sinusoidal scheme;
  double position_factor = 1;
  bool is_swapped = false, is_by_column = false;
  int digits = 0;  // of its base, if measured; 0: a common base
};

struct Column {
  double frequency = 0;
  int quarter = 0;
};

std::vector<Column> columns_of(const Way& way) {
  const Addition form = prepare(way.scheme);
  const Waves& waves = std::get<Waves>(form.source);
  std::vector<Column> columns;
  const auto width = static_cast<double>(way.scheme.width);
  for (std::size_t j = 0; j < waves.columns.size(); ++j) {
    const WaveColumn& from = waves.columns[j];
    Column column{radians_of(waves.waves[from.wave].frequency), from.quarter};
    const bool is_zero = column.frequency == 0 && column.quarter == 0;
    if (way.is_by_column && !is_zero) column.frequency = std::pow(way.scheme.base, -static_cast<double>(j) / width);
    if (way.is_swapped && !is_zero) column.quarter = 1 - column.quarter;
    column.frequency *= way.position_factor;
    columns.push_back(column);
  }
  return columns;
}

struct Fit {
  Way way;
  std::int64_t first = 0;
  double scale = 1;
  double unexplained = 0;
};

// The start that explains the values best, with the best scale.
Fit fit_of(const Way& way, const Added& added, const Samples& samples) {
  const std::vector<Column> columns = columns_of(way);
  const std::vector<std::int64_t>& positions = samples.axes.front().positions;
  const std::size_t starts = kMostStart - kLeastStart, width = columns.size();
  std::vector<double> products(starts), squares(starts);
  for (std::size_t j = 0; j < width; ++j) {
    // Σ v·e^(iωp) and Σ e^(2iωp): every start follows from these
    std::complex<double> product, doubled;
    double count = 0;
    const auto [frequency, quarter] = columns[j];
    if (frequency == 0 && quarter == 0) continue;  // a column of zeros
    for (std::size_t s = 0; s < positions.size(); ++s) {
      const std::complex<double> wave = std::polar(1.0, frequency * static_cast<double>(positions[s]));
      product += added.values[s * width + j] * wave;
      doubled += wave * wave;
      ++count;
    }
    const std::complex<double> step = std::polar(1.0, frequency);
    std::complex<double> turn =
        std::polar(1.0, frequency * static_cast<double>(kLeastStart) + quarter * std::numbers::pi / 2);
    for (std::size_t start = 0; start < starts; ++start) {
      products[start] += (product * turn).imag();
      squares[start] += (count - (doubled * turn * turn).real()) / 2;
      turn *= step;
    }
  }
  Fit best{way, 0, 1, added.energy};
  for (std::size_t start = 0; start < starts; ++start) {
    if (!(products[start] > 0) || !(squares[start] > 0)) continue;
    const double unexplained = std::max(0.0, added.energy - products[start] * products[start] / squares[start]);
    if (unexplained >= best.unexplained) continue;
    best = {way, static_cast<std::int64_t>(start) + kLeastStart, products[start] / squares[start], unexplained};
  }
  return best;
}

// Element by element: the difference of two sums loses small values.
void measure(Fit& fit, const Added& added, const Samples& samples) {
  const std::vector<Column> columns = columns_of(fit.way);
  const std::vector<std::int64_t>& positions = samples.axes.front().positions;
  std::vector<double> table;
  double product = 0, square = 0;
  for (std::size_t s = 0; s < positions.size(); ++s) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      const auto position = static_cast<double>(positions[s] + fit.first);
      const double angle = columns[j].frequency * position;
      table.push_back(columns[j].quarter == 0 ? std::sin(angle) : std::cos(angle));
      product += table.back() * added.values[table.size() - 1];
      square += table.back() * table.back();
    }
  }
  fit.scale = product / square;
  fit.unexplained = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    fit.unexplained += std::pow(added.values[i] - fit.scale * table[i], 2);
  }
}

// ω of each pair of columns, fastest first, by their own phases; for columns arranged in this layout.
std::optional<Line> line_of(const Added& added, const Samples& samples, WaveLayout layout) {
  const std::int64_t pairs = samples.features / 2;
  std::vector<WeightedPoint> points;
  for (std::int64_t pair = 0; pair < std::min<std::int64_t>(pairs, std::max<std::int64_t>(4, pairs / 4)); ++pair) {
    const std::int64_t a = layout == WaveLayout::kInterleaved ? 2 * pair : pair;
    const std::int64_t b = layout == WaveLayout::kInterleaved ? 2 * pair + 1 : pair + pairs;
    PairStatistics statistics;
    for (std::int64_t s = 0; s < samples.sequence; ++s) {
      const double sine = added.values[s * samples.features + a];
      const double cosine = added.values[s * samples.features + b];
      statistics.product.emplace_back(cosine, sine);
      statistics.before.push_back(1);
      statistics.after.push_back(sine * sine + cosine * cosine);
    }
    const PairFit fit = fit_pair(statistics, samples);
    if (fit.unexplained > 0.3 * fit.energy || std::fabs(fit.frequency) * samples.span() < 0.05) break;
    points.push_back({static_cast<double>(pair), std::log(std::fabs(fit.frequency)),
                      fit.frequency * fit.frequency / (1e-9 + fit.unexplained / fit.energy)});
  }
  if (points.size() < 2) return std::nullopt;
  return line_through(points);
}

// Common bases, and what common mistakes turn 10000 into: its root (i for 2i), its square (4i for 2i), e^4 (log10 for
// ln) and 10^9.21 (ln for log10).
const std::array kBases = {10000.0, 100.0, 1e8,      std::exp(4.0), std::pow(10.0, std::log(10000.0)),
                           1000.0,  1e5,   500000.0, 1e6,           100000.0};

std::vector<Way> ways_of(const Added& added, const Samples& samples) {
  std::vector<Way> ways;
  const OddWidth odd = samples.features % 2 == 0 ? OddWidth::kRefuse : OddWidth::kZero;
  const double pairs = std::floor(static_cast<double>(samples.features) / 2);
  for (const WaveLayout layout : {WaveLayout::kInterleaved, WaveLayout::kSinCos}) {
    std::vector<Way> plain;
    const auto keep = [&](double base, Spacing spacing, double factor, int digits) {
      if (!(base > 1 && base < 1e36) || !(factor > 1e-6 && factor < 1e6)) return;
      plain.push_back({{.width = samples.features, .base = base, .spacing = spacing, .layout = layout, .odd = odd},
                       factor,
                       false,
                       false,
                       digits});
    };
    constexpr double kDegree = std::numbers::pi / 180;
    for (const Spacing spacing : {Spacing::kPaper, Spacing::kInclusive}) {
      if (spacing == Spacing::kInclusive && pairs < 2) continue;
      for (const double base : kBases) keep(base, spacing, 1, 0);
      // degrees for radians, and vice versa
      for (const double factor : {kDegree, 1 / kDegree}) keep(10000, spacing, factor, 0);
    }
    const std::optional<Line> line = line_of(added, samples, layout);
    if (line && line->slope < 0) {
      const double paper = std::exp(-line->slope * static_cast<double>(samples.features) / 2);
      const double inclusive = std::exp(-line->slope * (pairs - 1));
      const double factor = std::exp(line->offset);
      for (const int digits : {1, 2, 3, 5}) {
        const double seen = std::fabs(factor - 1) < 0.03 ? 1.0 : to_digits(factor, 3);
        keep(to_digits(paper, digits), Spacing::kPaper, seen, digits);
        if (pairs >= 2) keep(to_digits(inclusive, digits), Spacing::kInclusive, seen, digits);
      }
    }
    for (const Way& way : plain) {
      ways.push_back(way);
      ways.push_back(way);
      // [c c s s] has its own name; [c s c s] has not
      if (layout == WaveLayout::kSinCos) {
        ways.back().scheme.layout = WaveLayout::kCosSin;
      } else {
        ways.back().is_swapped = true;
      }
    }
    for (const double base : {10000.0, 1e8}) {
      if (layout == WaveLayout::kInterleaved) {
        ways.push_back({{.width = samples.features, .base = base, .layout = layout, .odd = odd}, 1, false, true, 0});
      }
    }
  }
  return ways;
}

// Tables are computed in float32, and so are their angles: the variance of a value that this may account for, at the
// last position and the average frequency.
double angle_leeway(const Fit& fit, const Samples& samples) {
  constexpr double kUnits = 2.4e-7;  // two units in the last place
  double square = 0;
  const std::vector<Column> columns = columns_of(fit.way);
  for (const Column& column : columns) square += column.frequency * column.frequency;
  const double error = kUnits * std::fabs(static_cast<double>(samples.last_position() + fit.first)) * fit.scale;
  return error * error * square / static_cast<double>(columns.size());
}

// Whether two are the same convention, with its base measured slightly differently.
bool is_same(const Fit& one, const Fit& other) {
  const bool is_close = std::fabs(one.way.scheme.base / other.way.scheme.base - 1) < 0.02;
  return is_close && one.way.scheme.layout == other.way.scheme.layout &&
         one.way.scheme.spacing == other.way.scheme.spacing && one.way.is_swapped == other.way.is_swapped &&
         one.way.is_by_column == other.way.is_by_column && one.first == other.first &&
         std::fabs(one.way.position_factor / other.way.position_factor - 1) < 0.02;
}

Convention convention_of(const Fit& fit, const Added& added) {
  Convention result{.scheme = fit.way.scheme,
                    .magnitude = fit.scale,
                    .input_factor = added.factor,
                    .position_factor = fit.way.position_factor,
                    .first_position = fit.first,
                    .is_swapped = fit.way.is_swapped,
                    .is_by_column = fit.way.is_by_column,
                    .residual = std::sqrt(fit.unexplained / added.energy)};
  // as closely as the mean of this many values is known
  const auto count = static_cast<double>(added.values.size());
  if (std::fabs(fit.scale - 1) < 30 * std::sqrt(added.noise / count) + 1e-6) result.magnitude = 1;
  std::get<Sinusoidal>(result.scheme).scale = result.magnitude;
  return result;
}

}  // namespace

Added added_of(const Samples& samples, double factor_of_one_head) {
  Added added;
  const std::size_t size = samples.sequence * samples.features;
  const auto heads = static_cast<double>(samples.heads);
  std::vector<double> before(size), after(size);
  double square_before = 0;
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    before[i % size] += samples.before[i] / heads;
    after[i % size] += samples.after[i] / heads;
    square_before += samples.before[i] * samples.before[i];
  }
  added.factor = factor_of_one_head;
  if (samples.heads > 1) {
    // what differs between heads is in x as well, times the factor
    double product = 0, square = 0;
    for (std::size_t i = 0; i < samples.after.size(); ++i) {
      const double own = samples.before[i] - before[i % size];
      product += own * (samples.after[i] - after[i % size]);
      square += own * own;
    }
    if (square > 0) added.factor = product / square;
    if (std::fabs(added.factor - 1) < 20 * samples.rounding / std::sqrt(static_cast<double>(samples.after.size()))) {
      added.factor = 1;
    }
    const double root = std::sqrt(static_cast<double>(samples.features));
    if (std::fabs(added.factor / root - 1) < 3 * samples.rounding) added.factor = root;
    for (std::size_t i = 0; i < samples.after.size(); ++i) {
      const double own = samples.after[i] - after[i % size] - added.factor * (samples.before[i] - before[i % size]);
      added.apart += own * own;
    }
  }
  for (std::size_t i = 0; i < size; ++i) {
    added.values.push_back(after[i] - added.factor * before[i]);
    added.energy += added.values.back() * added.values.back();
  }
  // both tensors are rounded, each at its own magnitude
  const double count = static_cast<double>(samples.after.size());
  added.noise = samples.rounding * samples.rounding * (samples.energy + added.factor * added.factor * square_before) /
                count / heads;
  return added;
}

std::optional<Diagnosis> explain_by_waves(const Samples& samples) {
  if (samples.features < 2 || samples.axes.size() > 1 || samples.last_position() > 1'000'000) return std::nullopt;
  std::optional<Fit> best;
  std::vector<Fit> fits;
  Added chosen;
  const double root = std::sqrt(static_cast<double>(samples.features));
  for (const double factor : {1.0, root}) {
    const Added added = added_of(samples, factor);
    const auto count = static_cast<double>(added.values.size()), heads = static_cast<double>(samples.heads);
    // what heads do not share is not an addition; what is within rounding is nothing
    if (added.apart > 4 * added.noise * count * heads * heads || added.energy < 16 * added.noise * count) continue;
    std::vector<Fit> list;
    for (const Way& way : ways_of(added, samples)) list.push_back(fit_of(way, added, samples));
    std::stable_sort(list.begin(), list.end(),
                     [](const Fit& one, const Fit& other) { return one.unexplained < other.unexplained; });
    if (list.size() > 12) list.resize(12);
    for (Fit& fit : list) measure(fit, added, samples);
    std::stable_sort(list.begin(), list.end(),
                     [](const Fit& one, const Fit& other) { return one.unexplained < other.unexplained; });
    if (!list.empty() && (!best || list.front().unexplained / added.energy < best->unexplained / chosen.energy)) {
      best = list.front();
      fits = std::move(list);
      chosen = added;
    }
    if (samples.heads > 1) break;
  }
  if (!best) return std::nullopt;
  // among those that explain it equally well, the one with the simplest base, and then the paper's spacing, which is
  // first
  const auto count = static_cast<double>(chosen.values.size());
  const double room = best->unexplained * (8 / std::sqrt(count)) + 36 * chosen.noise;
  const double least = best->unexplained;
  const auto doubt = [](const Fit& fit) {
    return std::pair(fit.way.digits, fit.way.scheme.spacing != Spacing::kPaper);
  };
  for (const Fit& fit : fits) {
    if (fit.unexplained <= least + room && doubt(fit) < doubt(*best)) best = fit;
  }
  constexpr double kMostOfChange = 0.05;  // root mean square
  const double rounding = 2.5 * chosen.noise * count + angle_leeway(*best, samples) * count;
  if (best->unexplained > 4 * rounding || best->unexplained > kMostOfChange * kMostOfChange * chosen.energy) {
    return std::nullopt;
  }
  Diagnosis result;
  result.best = convention_of(*best, chosen);
  bool has_rival = false;
  for (const Fit& fit : fits) {
    if (is_same(fit, *best)) continue;
    // a measured number with more digits does not compete with a simple one
    const bool is_rival = fit.unexplained <= least + room && fit.way.digits <= best->way.digits;
    has_rival = has_rival || is_rival;
    if (result.others.size() < 4) result.others.push_back(convention_of(fit, chosen));
  }
  result.verdict = best->unexplained <= rounding && !has_rival ? Verdict::kSure : Verdict::kLikely;
  return result;
}

}  // namespace posenc::diagnosis
