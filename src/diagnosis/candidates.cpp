#include "diagnosis/candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "diagnosis/angles.h"
#include "diagnosis/line.h"

namespace posenc::diagnosis {
namespace {

// Bases of published models.
constexpr std::array kKnownBases = {100.0,    1000.0,   10000.0,  20000.0,  25000.0,   50000.0, 100000.0,
                                    150000.0, 160000.0, 250000.0, 500000.0, 1e6,       2e6,     5e6,
                                    8e6,      1e7,      1.2e7,    1e8,      11158840.0};

// The uncertainty of one pair's frequency, in radians.
double precision_of(const Samples& samples) {
  const double span = std::max(1.0, samples.span());
  return 6 * samples.rounding / span / std::sqrt(static_cast<double>(samples.sequence * samples.heads));
}

// ln ω_i = offset + slope·i; the fastest pairs have the most weight because they are known best.
Line line_through(const Structure& structure, double precision) {
  std::vector<WeightedPoint> points;
  for (std::size_t i = 0; i < structure.fits.size(); ++i) {
    const double size = std::fabs(structure.fits[i].frequency);
    if (size < 30 * precision || i > std::max<std::size_t>(4, structure.fits.size() / 4)) break;
    points.push_back({static_cast<double>(i), std::log(size), size * size});
  }
  return line_through(points);
}

// Sections of known models, time first; and those suggested by the pairs themselves.
std::vector<std::vector<std::int64_t>> likely_sections(const Structure& structure, std::size_t axes) {
  std::vector<std::vector<std::int64_t>> list = {{16, 24, 24}, {24, 20, 20}, {8, 12, 12}, {11, 11, 10}, {20, 22, 22}};
  std::vector<std::int64_t> counted(axes);
  for (const PairFit& fit : structure.fits) ++counted[fit.axis];
  list.push_back(counted);
  std::erase_if(list, [&](const auto& sections) {
    return sections.size() != axes ||
           std::accumulate(sections.begin(), sections.end(), std::int64_t{0}) != std::ssize(structure.fits);
  });
  return list;
}

// Which axis drives which pair, in every way that agrees with the pairs; also without sections, if nothing
// contradicts that.
std::vector<Rope> with_sections(const Rope& plain, const Structure& structure, std::size_t axes) {
  std::vector<Rope> list;
  std::vector<std::vector<std::uint8_t>> maps;  // several sections may be equivalent
  const auto agrees = [&](const std::vector<std::uint8_t>& map) {
    for (std::size_t i = 0; i < structure.fits.size(); ++i) {
      const PairFit& fit = structure.fits[i];
      if (fit.is_axis_sure && fit.axis != (map.empty() ? 0 : map[i])) return false;
    }
    return true;
  };
  if (agrees({})) list.push_back(plain);
  maps.emplace_back(structure.fits.size());
  if (axes == 1) return list;
  for (const auto& sections : likely_sections(structure, axes)) {
    for (const SectionOrder order :
         {SectionOrder::kChunked, SectionOrder::kInterleaved, SectionOrder::kAlternating}) {
      Rope rope = plain;
      rope.sections = sections;
      rope.section_order = order;
      const std::vector<std::uint8_t> map = pair_waves_of(prepare(rope)).axes;
      if (std::find(maps.begin(), maps.end(), map) != maps.end()) continue;
      maps.push_back(map);
      if (agrees(map)) list.push_back(rope);
    }
  }
  return list;
}

}  // namespace

double to_digits(double value, int digits) {
  if (!(value > 0)) return value;
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - (digits - 1));
  return std::round(value / unit) * unit;
}

Spectrum spectrum_of(const Structure& structure, const Samples& samples) {
  Spectrum result;
  const double precision = precision_of(samples);
  result.slowest_seen = 30 * precision;
  const Line line = line_through(structure, precision);
  result.sign = structure.fits.front().frequency < 0 ? -1 : 1;
  result.first = std::exp(line.offset);
  result.base = std::exp(-line.slope * static_cast<double>(structure.dims) / 2);
  double product = 0, before = 0;
  for (std::size_t i = 0; i < structure.fits.size(); ++i) {
    double energy = 0;
    for (const double one : structure.pairs[i].before) energy += one;
    product += std::abs(structure.fits[i].amplitude) * energy;
    before += energy;
    const double size = std::fabs(structure.fits[i].frequency);
    if (size > result.slowest_seen) {
      result.slowing = std::max(result.slowing, std::exp(line.offset + line.slope * static_cast<double>(i)) / size);
    }
  }
  if (before > 0) result.magnitude = product / before;
  const auto growing =
      std::count_if(structure.fits.begin(), structure.fits.end(), [](const PairFit& fit) { return fit.growth != 0; });
  result.grows = 4 * growing >= std::ssize(structure.fits);
  // no one scales positions up; but a rotation applied twice doubles every frequency
  if (std::fabs(result.first / 2 - 1) < 0.03) {
    result.times = 2;
    result.first /= 2;
    result.magnitude = std::sqrt(result.magnitude);
  }
  return result;
}

std::span<const double> known_bases() { return kKnownBases; }

bool is_known_base(double base) {
  return std::find(kKnownBases.begin(), kKnownBases.end(), base) != kKnownBases.end();
}

std::vector<NtkReading> ntk_readings(double base, std::int64_t dims, double within) {
  std::vector<NtkReading> list;
  if (dims <= 2) return list;
  const double exponent = static_cast<double>(dims) / static_cast<double>(dims - 2);
  for (const double usual : kUsualBases) {
    const double factor = std::round(std::pow(base / usual, 1 / exponent));
    if (!(factor > 1 && factor <= 128)) continue;
    const double meant = usual * std::pow(factor, exponent);
    if (std::fabs(meant / base - 1) < within) list.push_back({usual, factor, meant});
  }
  return list;
}

std::vector<Rope> unscaled_candidates(const Structure& structure, const Spectrum& spectrum, std::size_t axes) {
  Rope rope{.dims = structure.dims,
            .layout = structure.layout,
            .sign = spectrum.sign < 0 ? -1 : 1,
            .first_dim = structure.first};
  std::vector<double> bases, factors;
  // rounded to more and more digits, without duplicates
  const auto keep = [](std::vector<double>& list, double value) {
    const auto is_same = [&](double other) { return std::fabs(other / value - 1) < 1e-9; };
    if (std::none_of(list.begin(), list.end(), is_same)) list.push_back(value);
  };
  for (const double base : kKnownBases) {
    if (std::fabs(base / spectrum.base - 1) < 0.1) keep(bases, base);
  }
  for (const NtkReading& reading : ntk_readings(spectrum.base, structure.dims, 0.01)) keep(bases, reading.base);
  for (const int digits : {1, 2, 3, 5, 7, 9}) {
    const double base = to_digits(spectrum.base, digits);
    if (base > 1 && base < 1e36) keep(bases, base);
  }
  const double factor_seen = 1 / spectrum.first;
  if (std::fabs(factor_seen - 1) < 0.03) keep(factors, 1.0);
  for (const int digits : {1, 2, 4, 6}) {
    // positions are divided or multiplied by a round number
    for (const double factor : {to_digits(factor_seen, digits), 1 / to_digits(spectrum.first, digits)}) {
      const bool is_plain = !factors.empty() && std::fabs(factor_seen - 1) < 0.03;
      if (!is_plain && std::fabs(factor / factor_seen - 1) < 0.05) keep(factors, factor);
    }
  }
  std::vector<Rope> list;
  for (const Rope& way : with_sections(rope, structure, axes)) {
    for (const double factor : factors) {
      for (const double base : bases) {
        Rope one = way;
        one.base = base;
        one.scaling = factor == 1.0 ? RopeScaling(NoScaling{}) : RopeScaling(LinearScaling{.factor = factor});
        list.push_back(one);
      }
    }
  }
  return list;
}

Rope measured_candidate(const Structure& structure, const Spectrum& spectrum) {
  Rope rope{.dims = structure.dims,
            .layout = structure.layout,
            .sign = spectrum.sign < 0 ? -1 : 1,
            .first_dim = structure.first};
  LongropeScaling scaling{.attention_factor = spectrum.magnitude};
  for (std::size_t i = 0; i < structure.fits.size(); ++i) {
    const double size = std::fabs(structure.fits[i].frequency);
    const double plain = std::pow(rope.base, -2 * static_cast<double>(i) / static_cast<double>(rope.dims));
    const double last = scaling.short_factors.empty() ? 1.0 : scaling.short_factors.back();
    scaling.short_factors.push_back(size > spectrum.slowest_seen ? plain / size : last);
  }
  scaling.long_factors = scaling.short_factors;
  rope.scaling = scaling;
  return rope;
}

std::vector<Rope> scaled_candidates(const Rope& unscaled, const Spectrum& spectrum) {
  std::set<double> factors;
  for (const double factor : {to_digits(spectrum.slowing, 1), to_digits(spectrum.slowing, 2)}) {
    if (factor > 1.04) factors.insert(factor);
  }
  const double from_magnitude = std::exp((spectrum.magnitude - 1) / 0.1);
  const bool has_magnitude = spectrum.magnitude > 1.03;
  if (spectrum.slowing > 1.04 || !has_magnitude) {
    // the slowest visible pair may be on the ramp, or before it
    for (const double factor : {2.0, 4.0, 8.0, 16.0, 32.0, 40.0, 64.0}) {
      if (factor > spectrum.slowing * 0.9) factors.insert(factor);
    }
  }
  if (has_magnitude) factors.insert(to_digits(from_magnitude, spectrum.magnitude > 1.2 ? 2 : 1));
  std::vector<Rope> list;
  for (const double factor : factors) {
    if (!(factor > 1 && factor < 1e6)) continue;
    for (std::int64_t length = 1024; length <= 262144; length *= 2) {
      Rope rope = unscaled;
      if (!has_magnitude) {
        rope.scaling = Llama3Scaling{.factor = factor, .original_length = length};
        list.push_back(rope);
      }
      for (const bool truncate : {true, false}) {
        YarnScaling yarn{.factor = factor, .original_length = length, .truncate = truncate};
        const double usual = 0.1 * std::log(factor) + 1;
        if (std::fabs(spectrum.magnitude / usual - 1) > 0.01)
          yarn.attention_factor = to_digits(spectrum.magnitude, 3);
        rope.scaling = yarn;
        list.push_back(rope);
      }
    }
  }
  return list;
}

namespace {

// The length for which scalings that depend on it are prepared; the others are not affected.
Rotation form_of(const Rope& rope, AngleKind kind) {
  Rotation form = prepare(rope, {.length = 1, .numerics = numerics_of(kind)});
  form.magnitude = 1;
  round_frequencies(kind, form);
  return form;
}

// e^(iφ) of every token and pair, [tokens, pairs], with growth.
std::vector<std::complex<double>> rotations_of(const Trial& trial, const Samples& samples) {
  Rotation form = form_of(*trial.rope, trial.numerics);
  const Growth growth = std::exchange(std::get<PairWaves>(form.source).growth, {});
  std::vector<std::int64_t> ids, signs;
  for (int axis = 0; axis < form.position_axes; ++axis) {
    for (const std::int64_t position : samples.axes[axis].positions) {
      const std::int64_t id = rounded_position(trial.numerics, position + trial.first);
      // a negative position rotates in the opposite direction
      signs.push_back(id < 0 ? -1 : 1);
      ids.push_back(std::abs(id));
    }
  }
  const std::int64_t pairs = pairs_of(form), tokens = samples.sequence;
  std::vector<double> cosines(tokens * pairs), sines(cosines.size());
  tabulate_as(trial.numerics, form, ids, cosines, sines);
  std::vector<std::complex<double>> result(cosines.size());
  for (std::size_t at = 0; at < result.size(); ++at) {
    const std::size_t pair = at % pairs, token = at / pairs;
    const std::size_t axis = axis_of(form, pair);
    const std::size_t id = axis * tokens + token;
    const std::complex<double> once(cosines[at], static_cast<double>(signs[id]) * sines[at]);
    result[at] = trial.times == 2 ? once * once : once;
    // swapping sine and cosine gives i·e^(−iφ): rotated in the opposite direction, plus a quarter turn
    if (trial.is_swapped) result[at] = {-result[at].imag(), result[at].real()};
    if (!growth.rates.empty()) {
      const auto from_centre = static_cast<double>(signs[id] * ids[id] - growth.centre);
      result[at] *= std::exp((trial.is_for_keys ? -1 : 1) * growth.rates[pair] * from_centre);
    }
  }
  return result;
}

// The probability that a number changes when it is moved by this much and rounded again.
double chance_of_change(double value, double move, double rounding) {
  const double unit = std::ldexp(rounding / kRoundingShare, std::ilogb(value));
  return value == 0 || std::fabs(move) >= unit ? (move == 0 ? 0 : 1) : std::fabs(move) / unit;
}

}  // namespace

Score score(const Structure& structure, const Samples& samples, const Trial& trial) {
  const std::vector<std::complex<double>> turns = rotations_of(trial, samples);
  const std::size_t pairs = structure.pairs.size();
  double product = 0, before = 0;
  for (std::size_t at = 0; at < turns.size(); ++at) {
    const PairStatistics& pair = structure.pairs[at % pairs];
    product += (std::conj(turns[at]) * pair.product[at / pairs]).real();
    before += std::norm(turns[at]) * pair.before[at / pairs];
  }
  Score result;
  if (before <= 0 || product <= 0) return result;
  result.magnitude = product / before;
  result.unexplained = structure.outside;
  // element by element: the difference of two sums would be lost in their rounding
  for (std::size_t i = 0; i < pairs; ++i) {
    const Place place = place_of(structure.layout, structure.dims, structure.first, static_cast<std::int64_t>(i));
    for (std::int64_t head = 0; head < samples.heads; ++head) {
      for (std::int64_t token = 0; token < samples.sequence; ++token) {
        const std::complex<double> a = samples.read(head, token, place), b = samples.written(head, token, place);
        const std::complex<double> turn = turns[token * pairs + i] * result.magnitude;
        const double real = b.real() - (turn.real() * a.real() - turn.imag() * a.imag());
        const double imaginary = b.imag() - (turn.real() * a.imag() + turn.imag() * a.real());
        result.unexplained += real * real + imaginary * imaginary;
        if (structure.still[i]) {
          // without the magnitude, which is only measured
          const std::complex<double> move = b * turns[token * pairs + i] - b;
          result.missed += chance_of_change(b.real(), move.real(), samples.rounding);
          result.missed += chance_of_change(b.imag(), move.imag(), samples.rounding);
        }
      }
    }
  }
  return result;
}

std::vector<double> frequencies_of(const Rope& rope) {
  const Rotation form = form_of(rope, AngleKind::kExact);
  std::vector<double> list;
  for (const Frequency& frequency : form.frequencies) list.push_back(radians_of(frequency) * form.sign);
  return list;
}

std::optional<XposReading> xpos_candidate(const Structure& structure, const Samples& samples, const Rope& plain,
                                          std::int64_t first) {
  XposReading reading{plain};
  reading.rope.scaling = XposScaling{.scale_base = 1};
  const std::vector<double> rates = pair_waves_of(form_of(reading.rope, AngleKind::kExact)).growth.rates;
  double seen = 0, square = 0, lengths = 0;
  for (std::size_t i = 0; i < structure.fits.size(); ++i) {
    const PairFit& fit = structure.fits[i];
    seen += fit.growth * rates[i];
    square += rates[i] * rates[i];
    if (std::abs(fit.amplitude) > 0) lengths += std::log(std::abs(fit.amplitude)) * rates[i];
  }
  if (!(square > 0) || seen == 0) return std::nullopt;
  reading.is_for_keys = seen < 0;
  const double scale_base = square / std::fabs(seen);
  if (!(scale_base > 1 && scale_base < 1e7)) return std::nullopt;
  // a power of two if it is close to one
  const double power = std::exp2(std::round(std::log2(scale_base)));
  const double chosen = std::fabs(scale_base / power - 1) < 0.02 ? power : to_digits(scale_base, 3);
  // nothing grows at the centre: the length at the first token gives its distance from the centre
  const double away = lengths / square * chosen * (reading.is_for_keys ? -1 : 1);
  const auto centre =
      static_cast<std::int64_t>(std::llround(static_cast<double>(samples.first_position() + first) - away));
  reading.rope.scaling = XposScaling{.scale_base = chosen, .centre = std::max<std::int64_t>(0, centre)};
  return reading;
}

Start start_of(const Structure& structure, const Samples& samples, const Rope& rope, int times,
               std::span<const Start> hints) {
  const std::vector<double> frequencies = frequencies_of(rope);
  const std::vector<std::uint8_t> axes = pair_waves_of(form_of(rope, AngleKind::kExact)).axes;
  // phases of the first token, by the frequencies known at this point
  std::vector<std::complex<double>> phases;
  std::vector<double> turns;
  double most = 0;
  const std::size_t pairs = structure.pairs.size();
  for (std::size_t k = 0; k < std::min<std::size_t>(pairs, 24); ++k) {
    const std::size_t i = k * pairs / std::min<std::size_t>(pairs, 24);
    const double frequency = frequencies[i] * times;
    std::complex<double> sum;
    const std::vector<std::int64_t>& positions = samples.axes[axes.empty() ? 0 : axes[i]].positions;
    for (std::size_t s = 0; s < positions.size(); ++s) {
      const auto p = static_cast<double>(positions[s] - (samples.has_known_positions ? 0 : positions[0]));
      sum += structure.pairs[i].product[s] * std::polar(1.0, -frequency * p);
    }
    phases.push_back(sum);
    turns.push_back(frequency);
    most += std::abs(sum);
  }
  Start best;
  double largest = -std::numeric_limits<double>::infinity();
  const auto try_sum = [&](std::int64_t first, std::complex<double> sum) {
    for (const bool is_swapped : {false, true}) {
      const double size = is_swapped ? sum.imag() : sum.real();
      if (size > largest + 1e-9 * most) {
        largest = size;
        best = {first, is_swapped};
      }
    }
  };
  const auto try_first = [&](std::int64_t first) {
    std::complex<double> sum;
    for (std::size_t i = 0; i < phases.size(); ++i) {
      sum += phases[i] * std::polar(1.0, -turns[i] * static_cast<double>(first));
    }
    try_sum(first, sum);
  };
  for (const std::int64_t first : {0, 1, -1, 2, -2, 3, 4}) try_first(first);
  for (const Start& hint : hints) try_first(hint.first);
  if (!hints.empty() || largest > 0.9999 * most) return best;
  // known positions may be shifted a little, unknown ones may start anywhere; reversed ones end at 0
  const std::int64_t furthest = samples.has_known_positions ? 1024 : 140'000;
  const std::int64_t back = std::clamp<std::int64_t>(2 * samples.last_position() + 16, 64, furthest);
  for (const std::int64_t step : {-1, 1}) {
    std::vector<std::complex<double>> steps, at = phases;
    for (std::size_t i = 0; i < phases.size(); ++i) {
      steps.push_back(std::polar(1.0, -turns[i] * static_cast<double>(step)));
      at[i] *= std::polar(1.0, -2 * turns[i] * static_cast<double>(step));
    }
    // computed by multiplication from one to the next, which loses 1e-11 by the last
    for (std::int64_t first = 3; first < (step < 0 ? back : furthest); ++first) {
      std::complex<double> sum;
      for (std::size_t i = 0; i < at.size(); ++i) {
        const std::complex<double> one = at[i], turn = steps[i];
        at[i] = {one.real() * turn.real() - one.imag() * turn.imag(),
                 one.real() * turn.imag() + one.imag() * turn.real()};
        sum += at[i];
      }
      try_sum(step * first, sum);
    }
  }
  return best;
}

}  // namespace posenc::diagnosis
