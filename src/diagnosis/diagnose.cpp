#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "diagnosis/candidates.h"
#include "diagnosis/remarks.h"
#include "diagnosis/waves.h"

namespace posenc {
namespace {

using namespace diagnosis;

constexpr std::array<std::string_view, 5> kAngleNames = {"exact", "hf-f32", "ggml-f32", "bf16-frequencies",
                                                         "bf16-positions"};
constexpr std::array<std::string_view, 6> kVerdictNames = {
    "sure", "likely", "unchanged", "unknown-frequencies", "not-a-rotation", "too-little"};

// A scheme that was tried on a structure.
struct Tried {
  const Structure* structure = nullptr;
  Rope rope;
  Start start;
  Score result;
  double natural = 1;  // the magnitude that the scheme itself has
  Spectrum spectrum;
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

// What speaks against a scheme before its fit is looked at, the weightiest first. It decides between those that fit
// alike: a block too long or too short has a base that fits as well, and so has any number close to the right base.
auto doubts(const Tried& one, const Samples& samples) {
  constexpr double kLargestBase = 1e9;  // no model has more, nor what ntk makes of theirs
  const Rope& rope = one.rope;
  // features that stay are copied: a single changed bit says that they turn, and pairs that turn, however little,
  // push some elements over the edge of rounding
  const bool changes_outside = samples.is_one_type && one.structure->outside > 0;
  const bool lacks_changes = one.result.missed > 10;
  const bool is_strange = !is_known_base(rope.base) && ntk_readings(rope.base, rope.dims, 1e-9).empty();
  return std::array{changes_outside,
                    lacks_changes,
                    !is_known_base(rope.base),
                    std::fabs(one.result.magnitude / one.natural - 1) >= 3e-3,
                    rope.base > kLargestBase,
                    is_strange,
                    rope.dims != samples.features};
}

// The likeliest. The sum of squares over the noise of one element is twice the logarithm of how unlikely a scheme
// makes these tensors; those less than six standard deviations from the best are as good as it, which is wide because
// rounding is no normal distribution. Of these the least doubtful, and then the one that was thought of first.
const Tried& best_of(std::span<const Tried> tried, const Samples& samples) {
  const Tried* best = &*std::min_element(tried.begin(), tried.end(), [](const Tried& one, const Tried& other) {
    return one.result.unexplained < other.result.unexplained;
  });
  const double least = best->result.unexplained;
  const auto elements = static_cast<double>(samples.heads * samples.sequence * best->structure->dims);
  std::vector<const Tried*> alike;
  // what is not noise has no likelihood: then all that is nearly as good
  const double room = is_rounding(least, *best->structure, samples) ? 36 / elements : chance(samples);
  for (const Tried& one : tried) {
    if (one.result.unexplained <= least * (1 + room)) alike.push_back(&one);
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
    return score(*one.structure, samples, {&rope, one.start.first, AngleKind::kExact, one.start.is_swapped});
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
  const std::array<Start, 2> starts = {start_of(structure, samples, candidates.front()),
                                       start_of(structure, samples, measured)};
  const std::size_t from = tried.size();
  for (const Rope& rope : candidates) {
    Tried one{&structure, rope, start_of(structure, samples, rope, starts), {}, 1, spectrum};
    // the two bugs that move angles by more than rounding does
    for (const AngleKind kind : {AngleKind::kExact, AngleKind::kBf16Frequencies, AngleKind::kBf16Positions}) {
      const Score result = score(structure, samples, {&one.rope, one.start.first, kind, one.start.is_swapped});
      if (result.unexplained < one.result.unexplained) one.result = result;
    }
    tried.push_back(one);
  }
  const Tried plain = best_of(std::span(tried).subspan(from), samples);
  tried.push_back(refined(plain, samples));
  // a pair too slow for its frequency to be measured may still be slower than a plain one would be
  const bool is_plain = is_rounding(plain.result.unexplained, structure, samples);
  if (spectrum.slowing < 1.04 && spectrum.magnitude < 1.03 && is_plain) return;
  for (const Rope& rope : scaled_candidates(plain.rope, spectrum)) {
    Tried one = plain;
    one.rope = rope;
    one.natural = natural_magnitude(rope);
    one.result = score(structure, samples, {&one.rope, one.start.first, AngleKind::kExact, one.start.is_swapped});
    tried.push_back(one);
  }
}

// Which angle explains the best scheme best.
void find_numerics(const Tried& best, const Samples& samples, Convention& convention) {
  std::array<double, 5> left{};
  for (std::size_t kind = 0; kind < left.size(); ++kind) {
    left[kind] = score(*best.structure, samples,
                       {&best.rope, best.start.first, static_cast<AngleKind>(kind), best.start.is_swapped})
                     .unexplained;
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
  convention.residual = std::sqrt(left[chosen] / samples.energy);
}

Convention convention_of(const Tried& tried, const Samples& samples) {
  Rope rope = tried.rope;
  if (tried.start.is_swapped) rope.sign = -rope.sign;
  Convention convention{.scheme = rope,
                        .magnitude = tried.result.magnitude,
                        .first_position = tried.start.first,
                        .is_swapped = tried.start.is_swapped,
                        .residual = std::sqrt(tried.result.unexplained / samples.energy)};
  if (std::fabs(convention.magnitude - 1) < 20 * samples.rounding) convention.magnitude = 1;
  return convention;
}

// A base is the same to four digits: more of them are those of the measurement.
bool is_same_scheme(const Tried& one, const Tried& other) {
  Rope rope = other.rope;
  if (std::fabs(one.rope.base / rope.base - 1) < 1e-4) rope.base = one.rope.base;
  return one.rope == rope && one.start.first == other.start.first;
}

Diagnosis of_rotations(std::vector<Tried>& tried, const Samples& samples) {
  Diagnosis result;
  const double room = chance(samples);
  const Tried winner = best_of(tried, samples);
  std::stable_sort(tried.begin(), tried.end(), [](const Tried& one, const Tried& other) {
    return one.result.unexplained < other.result.unexplained;
  });
  result.best = convention_of(winner, samples);
  find_numerics(winner, samples, *result.best);
  const double left = result.best->residual * result.best->residual * samples.energy;
  const bool explains = is_rounding(left, *winner.structure, samples);
  const bool explains_roughly = result.best->residual < std::max(0.02, 10 * samples.rounding);
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
  result.verdict = !explains_roughly ? Verdict::kUnknown : explains && !has_rival ? Verdict::kSure : Verdict::kLikely;
  return result;
}

// Pairs turn steadily, but as no scheme says: what their frequencies are.
std::optional<Convention> of_measured(const std::vector<Structure>& structures, const Samples& samples) {
  const Structure* best = nullptr;
  const double room = chance(samples);
  for (const Structure& one : structures) {
    // where blocks of several sizes fit, what the smallest leaves out does not turn
    const bool is_as_good = best != nullptr && one.unexplained <= best->unexplained * (1 + room);
    if (best == nullptr || one.unexplained * (1 + room) < best->unexplained ||
        (is_as_good && one.dims < best->dims)) {
      best = &one;
    }
  }
  if (best == nullptr || samples.axes.size() > 1) return std::nullopt;
  const Spectrum spectrum = spectrum_of(*best, samples);
  Tried one{best, measured_candidate(*best, spectrum), {}, {}, 1, spectrum};
  one.start = start_of(*best, samples, one.rope);
  one.result = score(*best, samples, {&one.rope, one.start.first, AngleKind::kExact, one.start.is_swapped});
  return convention_of(one, samples);
}

}  // namespace

std::string_view name_of(AngleKind kind) noexcept { return kAngleNames[static_cast<std::size_t>(kind)]; }
std::string_view name_of(Verdict verdict) noexcept { return kVerdictNames[static_cast<std::size_t>(verdict)]; }

Diagnosis diagnose(ConstTensorView before, ConstTensorView after, const DiagnosisOptions& options) {
  const Samples samples = take_samples(before, after, options);
  Diagnosis result;
  double change = 0;
  for (std::size_t i = 0; i < samples.after.size(); ++i) {
    change += (samples.after[i] - samples.before[i]) * (samples.after[i] - samples.before[i]);
  }
  if (change <= samples.rounding * samples.rounding * samples.energy) {
    result.verdict = Verdict::kUnchanged;
    result.remarks.emplace_back("the tensors are the same: nothing was applied, or at position 0 alone");
    return result;
  }
  if (samples.span() < 3 || samples.sequence < 4) {
    result.verdict = Verdict::kTooLittle;
    result.remarks.emplace_back("four tokens at least are needed, at different positions");
    return result;
  }
  const std::vector<Structure> structures = structures_of(samples);
  std::vector<Tried> tried;
  for (const Structure& structure : structures) try_all(structure, samples, tried);
  if (!tried.empty()) result = of_rotations(tried, samples);

  const bool is_explained = result.best && result.verdict != Verdict::kUnknown;
  const std::optional<Convention> waves = is_explained ? std::nullopt : added_waves(samples);
  if (waves && waves->residual < std::max(0.02, 10 * samples.rounding) &&
      (!result.best || waves->residual < result.best->residual)) {
    result = {};
    result.best = waves;
    result.verdict = waves->residual < 6 * samples.rounding ? Verdict::kSure : Verdict::kLikely;
  }
  if (!result.best) result.verdict = structures.empty() ? Verdict::kNone : Verdict::kUnknown;
  if (result.verdict == Verdict::kUnknown) {
    const std::optional<Convention> measured = of_measured(structures, samples);
    if (measured && (!result.best || measured->residual < result.best->residual)) result.best = measured;
  }
  result.remarks = remarks_on(result, samples.are_known);
  return result;
}

}  // namespace posenc
