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
  double natural = 1;  // the magnitude that the scheme itself has
  int times = 1;       // how often it was applied
  bool is_for_keys = false;

  Trial trial(AngleKind kind = AngleKind::kExact) const {
    return {&rope, start.first, kind, start.is_swapped, times, is_for_keys};
  }
};

// How much better a fit must be to be more than chance: the scatter of a mean square over so many elements.
double chance(const Samples& samples) { return 8 / std::sqrt(static_cast<double>(samples.after.size())); }

// Whether rounding accounts for all that is left in the pairs. In 16 bits the result is rounded, or both tensors are:
// 0.6 to 0.95 of what it is where values are powers of two, and a near miss leaves 1.3; wider, two products and a sum
// were rounded as well.
bool is_rounding(double unexplained, const Structure& structure, const Samples& samples) {
  const bool is_narrow = samples.rounding > 1e-5;
  return std::sqrt(unexplained / structure.energy) < (is_narrow ? 1.1 : 3.0) * samples.rounding;
}

// Features that stay are copied: a single changed bit outside the block says that they rotate.
bool changes_outside(const Tried& one, const Samples& samples) {
  return samples.is_one_type && one.structure->outside > 0;
}

// What speaks against a scheme before its fit is looked at, the weightiest first. It decides between those that fit
// alike: a block too long or too short has a base that fits as well, and so has any number close to the right base.
auto doubts(const Tried& one, const Samples& samples) {
  constexpr double kLargestBase = 1e9;  // no model has more, nor what ntk makes of theirs
  const Rope& rope = one.rope;
  // pairs that rotate, however little, push some elements over the edge of rounding
  const bool lacks_changes = one.result.missed > 10;
  const bool is_strange = !is_known_base(rope.base) && ntk_readings(rope.base, rope.dims, 1e-9).empty();
  return std::array{changes_outside(one, samples), lacks_changes,
                    !is_known_base(rope.base),     std::fabs(one.result.magnitude / one.natural - 1) >= 3e-3,
                    rope.base > kLargestBase,      is_strange,
                    rope.dims != samples.features};
}

// How many elements decide: rounding is as large as the element, so few large ones outweigh many small ones. As many
// as there are where they are normally distributed.
double effective_elements(const Samples& samples, std::int64_t dims) {
  double fourth = 0;
  for (const double value : samples.after) fourth += value * value * value * value;
  const auto share = static_cast<double>(dims) / static_cast<double>(samples.features);
  const auto count = static_cast<double>(samples.after.size());
  return share * std::min(count, 3 * samples.energy * samples.energy / fourth);
}

// The likeliest. The sum of squares over the noise of one element is twice the logarithm of how unlikely a scheme
// makes these tensors; those less than six standard deviations from the best are as good as it, which is wide because
// rounding is no normal distribution. Of these the least doubtful, and then the one that was thought of first.
//
// Where some scheme explains all that changed, those with changes outside their block are out of the contest, however
// well they fit: in 16 bits, the slowest pairs move by less than rounding, which is not the noise that is assumed, and
// a shorter block that leaves them out would fit better than the right one.
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
  // what is not noise has no likelihood: then all that is nearly as good
  const double room = is_rounding(least, *best->structure, samples) ? 36 / elements : chance(samples);
  for (const Tried& one : tried) {
    if (!is_out(one) && one.result.unexplained <= least * (1 + room)) alike.push_back(&one);
  }
  return **std::min_element(alike.begin(), alike.end(), [&](const Tried* one, const Tried* other) {
    return doubts(*one, samples) < doubts(*other, samples);
  });
}

double natural_magnitude(const Rope& rope) { return prepare(rope, {.length = 1}).magnitude; }

// With the base that leaves least. The fastest pairs alone, which the first guess is from, know it less well than all
// do, and a block of the wrong size must not win because its guess was the luckier one.
Tried refined(const Tried& from, const Samples& samples) {
  Tried one = from;
  const auto left = [&](double factor) {
    Rope rope = one.rope;
    rope.base *= factor;
    Trial trial = one.trial();
    trial.rope = &rope;
    return score(*one.structure, samples, trial);
  };
  // little enough for the furthest angle to move by less than a hundredth: there what is left is a parabola
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

void try_all(const Structure& structure, const Samples& samples, std::vector<Tried>& tried) {
  const Spectrum spectrum = spectrum_of(structure, samples);
  if (!(spectrum.base > 1) || !(spectrum.base < 1e36)) return;
  const std::vector<Rope> candidates = unscaled_candidates(structure, spectrum, samples.axes.size());
  if (candidates.empty()) return;
  // where the tokens begin is found twice, by the likeliest base and by the one that was measured: a base that is
  // only nearly right leads astray
  Rope measured = candidates.front();
  measured.base = spectrum.base;
  const std::array<Start, 2> starts = {start_of(structure, samples, candidates.front(), spectrum.times),
                                       start_of(structure, samples, measured, spectrum.times)};
  const std::size_t from = tried.size();
  for (const Rope& rope : candidates) {
    Tried one{&structure, rope, start_of(structure, samples, rope, spectrum.times, starts), {}, 1, spectrum.times};
    // the two bugs that move angles by more than rounding does
    for (const AngleKind kind : {AngleKind::kExact, AngleKind::kBf16Frequencies, AngleKind::kBf16Positions}) {
      const Score result = score(structure, samples, one.trial(kind));
      if (result.unexplained < one.result.unexplained) one.result = result;
    }
    tried.push_back(one);
  }
  const Tried plain = best_of(std::span(tried).subspan(from), samples);
  tried.push_back(refined(plain, samples));
  if (spectrum.grows && samples.axes.size() == 1) {
    if (const auto reading = xpos_candidate(structure, samples, plain.rope, plain.start.first)) {
      Tried one = plain;
      one.rope = reading->rope;
      one.is_for_keys = reading->is_for_keys;
      one.result = score(structure, samples, one.trial());
      tried.push_back(one);
    }
  }
  // a pair too slow for its frequency to be measured may still be slower than a plain one would be
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

// Which angle explains the best scheme best.
void find_numerics(const Tried& best, const Samples& samples, Convention& convention) {
  std::array<double, 5> left{};
  for (std::size_t kind = 0; kind < left.size(); ++kind) {
    left[kind] = score(*best.structure, samples, best.trial(static_cast<AngleKind>(kind))).unexplained;
  }
  const auto least = std::min_element(left.begin(), left.end());
  const double room = chance(samples);
  const auto is_as_good = [&](double value) { return value <= *least * (1 + room) + 1e-300; };
  // where they cannot be told apart, the exact one
  const std::size_t chosen = is_as_good(left[0]) ? 0 : static_cast<std::size_t>(std::distance(left.begin(), least));
  convention.numerics = static_cast<AngleKind>(chosen);
  // small positions are the same in bf16: no rival, but nothing else
  const bool is_repeated = left[4] == left[0];
  convention.is_numerics_sure = std::count_if(left.begin(), left.end() - (is_repeated ? 1 : 0), is_as_good) == 1;
  convention.residual = std::sqrt(left[chosen] / samples.change);
}

// Positions that count down from the last token look like a rotation the other way from before 0.
void turn_around(const Samples& samples, Rope& rope, Convention& convention) {
  const std::int64_t first = samples.first_position(), last = samples.last_position();
  if (samples.axes.size() > 1 || last <= first || last + convention.first_position > 0) return;
  rope.sign = -rope.sign;
  convention.is_reversed = true;
  convention.first_position = -convention.first_position - last - first;
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

// A base is the same to four digits: more of them are those of the measurement.
bool is_same_scheme(const Tried& one, const Tried& other) {
  Rope rope = other.rope;
  if (std::fabs(one.rope.base / rope.base - 1) < 1e-4) rope.base = one.rope.base;
  return one.rope == rope && one.start.first == other.start.first;
}

// Frequencies that are made in float32 may be two units in the last place off: what that is in energy at the last
// position, where all pairs are as fast as they are on average.
double angle_leeway(const Tried& tried, const Samples& samples) {
  double square = 0;
  const std::vector<double> frequencies = frequencies_of(tried.rope);
  for (const double frequency : frequencies) square += frequency * frequency;
  const double furthest = std::fabs(static_cast<double>(samples.last_position() + tried.start.first)) * tried.times;
  return std::pow(2.4e-7 * furthest, 2) * square / static_cast<double>(frequencies.size()) * samples.energy;
}

// Whether a scheme leaves no more than pairs with frequencies of their own would, or than rounding in every step of
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
  const bool is_exact = is_rounding(left, *winner.structure, samples);
  result.verdict = !explains(winner, left, samples) ? Verdict::kNone
                   : is_exact && !has_rival         ? Verdict::kSure
                                                    : Verdict::kLikely;
  return result;
}

// Pairs rotate steadily, but as no scheme says: what their frequencies are.
std::optional<Tried> of_measured(const std::vector<Structure>& structures, const Samples& samples) {
  const Structure* best = nullptr;
  const double room = chance(samples);
  for (const Structure& one : structures) {
    // where blocks of several sizes fit, what the smallest leaves out does not rotate
    const bool is_as_good = best != nullptr && one.unexplained <= best->unexplained * (1 + room);
    if (best == nullptr || one.unexplained * (1 + room) < best->unexplained ||
        (is_as_good && one.dims < best->dims)) {
      best = &one;
    }
  }
  if (best == nullptr || samples.axes.size() > 1) return std::nullopt;
  const Spectrum spectrum = spectrum_of(*best, samples);
  // pairs that all stand still, or all rotate alike, are no position
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
