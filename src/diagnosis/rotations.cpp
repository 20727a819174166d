#include "diagnosis/rotations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace posenc::diagnosis {
namespace {

// A scheme that was tried on a structure.
struct Tried {
  const Structure* structure = nullptr;
  Rope rope;
  Start start;
  Score result;
  double natural = 1;  // the scheme's own magnitude
  int times = 1;       // how often it was applied
  bool is_for_keys = false;

  Trial trial(AngleKind kind = AngleKind::kExact) const {
    return {&rope, start.first, kind, start.is_swapped, times, is_for_keys};
  }
};

// How much better a fit must be to be more than chance: the scatter of a mean square over this many elements.
double chance(const Samples& samples) { return 8 / std::sqrt(static_cast<double>(samples.after.size())); }

// Whether rounding accounts for everything that remains in the pairs. In 16 bits the result is rounded, or both
// tensors are, which leaves 0.6 to 0.95 of `rounding`, the error at powers of two; a near miss leaves 1.3. In wider
// types, two products and a sum were rounded as well.
bool is_rounding(double unexplained, const Structure& structure, const Samples& samples) {
  const bool is_narrow = samples.rounding > 1e-5;
  return std::sqrt(unexplained / structure.energy) < (is_narrow ? 1.1 : 3.0) * samples.rounding;
}

// Unrotated features are copied: a single changed bit outside the block means that they rotate.
bool changes_outside(const Tried& one, const Samples& samples) {
  return samples.is_one_type && one.structure->outside > 0;
}

// Whether its frequencies are others than those that were meant, if that is known.
bool is_unexpected(const Rope& rope, const Samples& samples) {
  const Rope* const want = samples.expected;
  return want != nullptr && !(rope.base == want->base && *rope.scaling == *want->scaling &&
                              rope.sections == want->sections && rope.section_order == want->section_order);
}

// What counts against a scheme before its fit is considered, most important first. It decides between schemes that
// fit equally well: a block that is too long or too short has a base that fits as well, and so does any number close
// to the right base.
auto doubts(const Tried& one, const Samples& samples) {
  constexpr double kLargestBase = 1e9;  // no model has more, even after ntk
  const Rope& rope = one.rope;
  // pairs that rotate, however little, change the rounding of some elements
  const bool lacks_changes = one.result.missed > 10;
  const bool is_strange = !is_known_base(rope.base) && ntk_readings(rope.base, rope.dims, 1e-9).empty();
  return std::array{changes_outside(one, samples),
                    lacks_changes,
                    is_unexpected(rope, samples),
                    !is_known_base(rope.base),
                    std::fabs(one.result.magnitude / one.natural - 1) >= 3e-3,
                    rope.base > kLargestBase,
                    is_strange,
                    rope.dims != samples.features};
}

// How many elements matter: rounding is proportional to the element, so a few large ones outweigh many small ones.
// Equal to their number if they are normally distributed.
double effective_elements(const Samples& samples, std::int64_t dims) {
  double fourth = 0;
  for (const double value : samples.after) fourth += value * value * value * value;
  const auto share = static_cast<double>(dims) / static_cast<double>(samples.features);
  const auto count = static_cast<double>(samples.after.size());
  return share * std::min(count, 3 * samples.energy * samples.energy / fourth);
}

// The most likely scheme. The sum of squares over the noise of one element is minus twice the log-likelihood of these
// tensors; schemes less than six standard deviations from the best count as equally good, which is wide because
// rounding is not normally distributed. Among these, the least doubtful, and then the one that was proposed first.
//
// If some scheme explains everything that changed, those with changes outside their block are excluded, however well
// they fit: in 16 bits, the slowest pairs move by less than rounding, which is not the noise that is assumed, and a
// shorter block that omits them would fit better than the right one.
const Tried& best_of(std::span<const Tried> tried, const Samples& samples) {
  const bool has_whole = std::any_of(tried.begin(), tried.end(), [&](const Tried& one) {
    return !changes_outside(one, samples) && is_rounding(one.result.unexplained, *one.structure, samples);
  });
  const auto is_out = [&](const Tried& one) { return has_whole && changes_outside(one, samples); };
  const Tried* best = &*std::min_element(tried.begin(), tried.end(), [&](const Tried& one, const Tried& other) {
    return std::pair(is_out(one), one.result.unexplained) < std::pair(is_out(other), other.result.unexplained);
  });
  const double least = best->result.unexplained;
  const double elements = effective_elements(samples, best->structure->dims);
  std::vector<const Tried*> alike;
  // without noise there is no likelihood: then everything that is nearly as good
  const double room = is_rounding(least, *best->structure, samples) ? 36 / elements : chance(samples);
  for (const Tried& one : tried) {
    if (!is_out(one) && one.result.unexplained <= least * (1 + room)) alike.push_back(&one);
  }
  return **std::min_element(alike.begin(), alike.end(), [&](const Tried* one, const Tried* other) {
    return doubts(*one, samples) < doubts(*other, samples);
  });
}

double natural_magnitude(const Rope& rope) { return prepare(rope, {.length = 1}).magnitude; }

// With the base that leaves the least. The fastest pairs alone, from which the first guess is made, determine it less
// well than all pairs do, and a block of the wrong size must not win because its guess was luckier.
Tried refined(const Tried& from, const Samples& samples) {
  Tried one = from;
  const auto left = [&](double factor) {
    Rope rope = one.rope;
    rope.base *= factor;
    Trial trial = one.trial();
    trial.rope = &rope;
    return score(*one.structure, samples, trial);
  };
  // small enough for the furthest angle to move by less than a hundredth: there the residual is a parabola
  const double step = 0.01 / std::max(1.0, static_cast<double>(std::abs(samples.last_position() + one.start.first)));
  for (int pass = 0; pass < 2; ++pass) {
    const double below = left(1 - step).unexplained, here = left(1).unexplained, above = left(1 + step).unexplained;
    const double curve = below - 2 * here + above;
    if (!(curve > 0)) break;
    one.rope.base *= std::exp(std::clamp(step * (below - above) / (2 * curve), -0.05, 0.05));
  }
  one.result = left(1);
  return one;
}

// The scheme that was meant, with the pairs, direction and positions that were found.
void try_expected(const Tried& plain, const Samples& samples, std::vector<Tried>& tried) {
  const Rope* const want = samples.expected;
  if (want == nullptr) return;
  const bool has_lists = std::holds_alternative<LongropeScaling>(*want->scaling) || !want->sections.empty();
  const bool has_axes = want->sections.empty() || want->sections.size() == samples.axes.size();
  if (!has_axes || (has_lists && want->dims != plain.rope.dims)) return;
  Tried one = plain;
  one.rope.base = want->base;
  one.rope.scaling = want->scaling;
  one.rope.sections = want->sections;
  one.rope.section_order = want->section_order;
  one.natural = std::pow(natural_magnitude(one.rope), one.times);
  one.start = start_of(*one.structure, samples, one.rope, one.times, std::array{plain.start});
  one.result = score(*one.structure, samples, one.trial());
  tried.push_back(one);
}

// Angles in 16 bits, with the scheme that fits best without: the other bugs of this kind are tried with every base.
void try_narrow_angles(const Tried& plain, const Samples& samples, std::vector<Tried>& tried) {
  for (const AngleKind kind : {AngleKind::kBf16Angles, AngleKind::kF16Frequencies, AngleKind::kF16Angles}) {
    Tried one = plain;
    one.result = score(*one.structure, samples, one.trial(kind));
    tried.push_back(one);
  }
}

void try_all(const Structure& structure, const Samples& samples, std::vector<Tried>& tried) {
  const Spectrum spectrum = spectrum_of(structure, samples);
  if (!(spectrum.base > 1) || !(spectrum.base < 1e36)) return;
  const std::vector<Rope> candidates = unscaled_candidates(structure, spectrum, samples.axes.size());
  if (candidates.empty()) return;
  // the start of the tokens is found twice, with the most likely base and with the measured one: a base that is only
  // nearly right is misleading
  Rope measured = candidates.front();
  measured.base = spectrum.base;
  const std::array<Start, 2> starts = {start_of(structure, samples, candidates.front(), spectrum.times),
                                       start_of(structure, samples, measured, spectrum.times)};
  const std::size_t from = tried.size();
  for (const Rope& rope : candidates) {
    Tried one{&structure, rope, start_of(structure, samples, rope, spectrum.times, starts), {}, 1, spectrum.times};
    // the two bugs that change angles by more than rounding does
    for (const AngleKind kind : {AngleKind::kExact, AngleKind::kBf16Frequencies, AngleKind::kBf16Positions}) {
      const Score result = score(structure, samples, one.trial(kind));
      if (result.unexplained < one.result.unexplained) one.result = result;
    }
    tried.push_back(one);
  }
  const Tried plain = best_of(std::span(tried).subspan(from), samples);
  tried.push_back(refined(plain, samples));
  try_expected(plain, samples, tried);
  if (!is_rounding(plain.result.unexplained, structure, samples)) try_narrow_angles(plain, samples, tried);
  if (spectrum.grows && samples.axes.size() == 1) {
    if (const auto reading = xpos_candidate(structure, samples, plain.rope, plain.start.first)) {
      Tried one = plain;
      one.rope = reading->rope;
      one.is_for_keys = reading->is_for_keys;
      one.result = score(structure, samples, one.trial());
      tried.push_back(one);
    }
  }
  // a pair too slow for its frequency to be measured may still be slower than an unscaled one
  const bool is_plain = is_rounding(plain.result.unexplained, structure, samples);
  if (spectrum.slowing < 1.04 && spectrum.magnitude < 1.03 && is_plain) return;
  for (const Rope& rope : scaled_candidates(plain.rope, spectrum)) {
    Tried one = plain;
    one.rope = rope;
    one.natural = std::pow(natural_magnitude(rope), spectrum.times);
    one.result = score(structure, samples, one.trial());
    tried.push_back(one);
  }
}

// Which kind of angle explains the best scheme best.
void find_numerics(const Tried& best, const Samples& samples, Convention& convention) {
  std::array<double, 8> left{};
  for (std::size_t kind = 0; kind < left.size(); ++kind) {
    left[kind] = score(*best.structure, samples, best.trial(static_cast<AngleKind>(kind))).unexplained;
  }
  const auto least = std::min_element(left.begin(), left.end());
  const double room = chance(samples);
  const auto is_as_good = [&](double value) { return value <= *least * (1 + room) + 1e-300; };
  // if they cannot be distinguished, the exact one
  const std::size_t chosen = is_as_good(left[0]) ? 0 : static_cast<std::size_t>(std::distance(left.begin(), least));
  convention.numerics = static_cast<AngleKind>(chosen);
  // small positions are the same in bf16, which is then not a rival
  constexpr auto kBf16Positions = static_cast<std::size_t>(AngleKind::kBf16Positions);
  const auto rivals = std::count_if(left.begin(), left.end(), is_as_good) -
                      (left[kBf16Positions] == left[0] && is_as_good(left[0]) ? 1 : 0);
  convention.is_numerics_sure = rivals == 1;
  convention.residual = std::sqrt(left[chosen] / samples.change);
}

// No token is beyond position 0: the opposite direction with positions that count down gives the same numbers.
bool is_all_negative(const Samples& samples, const Convention& convention) {
  const std::int64_t first = samples.first_position(), last = samples.last_position();
  return samples.axes.size() == 1 && last > first && last + convention.first_position <= 0;
}

// Positions that count down from the last token look like a clockwise rotation with negative positions.
void turn_around(const Samples& samples, Rope& rope, Convention& convention) {
  if (rope.sign > 0 || !is_all_negative(samples, convention)) return;
  rope.sign = -rope.sign;
  convention.is_reversed = true;
  convention.first_position = -convention.first_position - samples.last_position() - samples.first_position();
}

Convention convention_of(const Tried& tried, const Samples& samples) {
  Rope rope = tried.rope;
  if (tried.start.is_swapped) rope.sign = -rope.sign;
  Convention convention{.magnitude = tried.result.magnitude,
                        .position_factor = static_cast<double>(tried.times),
                        .first_position = tried.start.first,
                        .is_swapped = tried.start.is_swapped,
                        .is_for_keys = tried.is_for_keys,
                        .residual = std::sqrt(tried.result.unexplained / samples.change)};
  turn_around(samples, rope, convention);
  convention.scheme = rope;
  if (std::fabs(convention.magnitude - 1) < 20 * samples.rounding) convention.magnitude = 1;
  return convention;
}

// Bases are equal if four digits agree: further digits are those of the measurement.
bool is_same_scheme(const Tried& one, const Tried& other) {
  Rope rope = other.rope;
  if (std::fabs(one.rope.base / rope.base - 1) < 1e-4) rope.base = one.rope.base;
  return one.rope == rope && one.start.first == other.start.first;
}

// Frequencies computed in float32 may differ by two units in the last place: the resulting energy at the last
// position, if all pairs have the average speed.
double angle_leeway(const Tried& tried, const Samples& samples) {
  double square = 0;
  const std::vector<double> frequencies = frequencies_of(tried.rope);
  for (const double frequency : frequencies) square += frequency * frequency;
  const double furthest = std::fabs(static_cast<double>(samples.last_position() + tried.start.first)) * tried.times;
  return std::pow(2.4e-7 * furthest, 2) * square / static_cast<double>(frequencies.size()) * samples.energy;
}

// Whether a scheme leaves no more than pairs with independent frequencies would, or than rounding in every step of
// bf16 arithmetic and angles in float32 account for; and little of the change.
bool explains(const Tried& tried, double left, const Samples& samples) {
  constexpr double kMostOfChange = 0.03;  // root mean square
  if (!(left < kMostOfChange * kMostOfChange * samples.change)) return false;
  const double rounding = 16 * samples.rounding * samples.rounding * samples.energy;
  return left <= rounding + angle_leeway(tried, samples) ||
         left <= tried.structure->unexplained * (1.1 + chance(samples));
}

Diagnosis of_tried(std::vector<Tried>& tried, const Samples& samples) {
  Diagnosis result;
  const double room = chance(samples);
  const Tried winner = best_of(tried, samples);
  std::stable_sort(tried.begin(), tried.end(), [](const Tried& one, const Tried& other) {
    return one.result.unexplained < other.result.unexplained;
  });
  result.best = convention_of(winner, samples);
  find_numerics(winner, samples, *result.best);
  const double left = result.best->residual * result.best->residual * samples.change;
  bool has_rival = false;
  std::vector<Tried> listed = {winner};
  for (const Tried& other : tried) {
    if (is_same_scheme(other, winner)) continue;
    has_rival = has_rival || other.result.unexplained < winner.result.unexplained * (1 + room);
    const auto is_same = [&](const Tried& one) { return is_same_scheme(one, other); };
    if (listed.size() > 4 || std::any_of(listed.begin(), listed.end(), is_same)) continue;
    listed.push_back(other);
    result.others.push_back(convention_of(other, samples));
  }
  result.best->is_scaling_sure = !has_rival;
  if (!result.best->is_reversed && is_all_negative(samples, *result.best)) {
    Convention other = *result.best;
    Rope rope = std::get<Rope>(other.scheme);
    rope.sign = -rope.sign;
    other.scheme = rope;
    other.is_reversed = true;
    other.first_position = -other.first_position - samples.last_position() - samples.first_position();
    result.others.insert(result.others.begin(), other);
    has_rival = true;
  }
  const bool is_exact = is_rounding(left, *winner.structure, samples);
  result.verdict = !explains(winner, left, samples) ? Verdict::kNone
                   : is_exact && !has_rival         ? Verdict::kSure
                                                    : Verdict::kLikely;
  return result;
}

// Pairs rotate steadily, but not as in any scheme: reports their frequencies.
std::optional<Tried> of_measured(const std::vector<Structure>& structures, const Samples& samples) {
  const Structure* best = nullptr;
  const double room = chance(samples);
  for (const Structure& one : structures) {
    // if blocks of several sizes fit, what the smallest omits does not rotate
    const bool is_as_good = best != nullptr && one.unexplained <= best->unexplained * (1 + room);
    if (best == nullptr || one.unexplained * (1 + room) < best->unexplained ||
        (is_as_good && one.dims < best->dims)) {
      best = &one;
    }
  }
  if (best == nullptr || samples.axes.size() > 1) return std::nullopt;
  const Spectrum spectrum = spectrum_of(*best, samples);
  // pairs that are all constant, or all rotate alike, encode no position
  if (!(spectrum.base > 1) || !(spectrum.base < 1e36)) return std::nullopt;
  Tried one{best, measured_candidate(*best, spectrum), {}, {}};
  one.start = start_of(*best, samples, one.rope);
  one.result = score(*best, samples, one.trial());
  return one;
}

}  // namespace

Diagnosis explain_by_rotation(const Samples& samples) {
  const std::vector<Structure> structures = structures_of(samples);
  std::vector<Tried> tried;
  for (const Structure& structure : structures) try_all(structure, samples, tried);
  Diagnosis result;
  if (!tried.empty()) result = of_tried(tried, samples);
  if (result.verdict == Verdict::kSure || result.verdict == Verdict::kLikely) return result;
  result = {};
  if (const std::optional<Tried> measured = of_measured(structures, samples)) {
    if (explains(*measured, measured->structure->unexplained, samples)) {
      result.verdict = Verdict::kUnknown;
      result.best = convention_of(*measured, samples);
    }
  }
  return result;
}

}  // namespace posenc::diagnosis
