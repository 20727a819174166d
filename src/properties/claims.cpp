// Which properties are expected of which scheme, in one table: from its formula, from its paper or, for our bad ideas,
// from why they are bad. A scheme is identified by the kind of its form, or by its name if schemes of one kind differ.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "properties/rows.h"
#include "properties/trial.h"
#include "terms/terms.h"

namespace posenc::properties {
namespace {

template <class... T> struct Overloaded : T... { using T::operator()...; };
template <class... T> Overloaded(T...) -> Overloaded<T...>;

std::string_view kind_of(const Form& form) {
  using Name = std::string_view;
  const auto of_addition = [](const Addition& addition) {
    return std::visit(
        Overloaded{[](const Waves&) -> Name { return "waves"; }, [](const Rows&) -> Name { return "rows"; },
                   [](const Lines&) -> Name { return "lines"; }},
        addition.source);
  };
  return std::visit(Overloaded{[](const Nothing&) -> Name { return "nothing"; }, of_addition,
                               [](const Rotation&) -> Name { return "rotation"; },
                               [](const Bias& bias) { return terms::name_of(bias); }},
                    form);
}

// Conditions under which something is expected.
bool always(const Trial&) { return true; }
// Sines without cosines neither rotate nor have a sum of cosines; float32 angles are inexact.
bool of_whole_exact_pairs(const Trial& trial) {
  return has_exact_angles(trial.form) && !wave_pairs_of(trial.form).empty();
}
// Enough cycles of the fastest wave for a farther position to score higher than a closer one: slower waves fill the gap
// until distance · spacing of frequencies is about 1.
bool of_enough_cycles(const Trial& trial) {
  const double angle = static_cast<double>(trial.length) * fastest_wave(trial.form);
  return angle >= std::max(64.0, static_cast<double>(width_of(trial.form)) / 2);
}
// Rows differ between positions.
bool of_some_motion(const Trial& trial) { return fastest_wave(trial.form) > 0 && amplitude_of(trial.form, 2) > 0; }
// No wave faster than a radian per position, over more than a few cycles of the fastest.
bool of_slow_waves(const Trial& trial) {
  const double fastest = fastest_wave(trial.form);
  return of_some_motion(trial) && fastest <= 1 && fastest * static_cast<double>(trial.length) >= 16;
}
bool of_lines_that_rise(const Trial& trial) {
  const auto* const addition = std::get_if<Addition>(&trial.form);
  const auto* const lines = addition == nullptr ? nullptr : std::get_if<Lines>(&addition->source);
  return lines != nullptr &&
         std::any_of(lines->step.begin(), lines->step.end(), [](double step) { return step != 0; });
}
bool without_growth(const Trial& trial) {
  const auto* const rotation = std::get_if<Rotation>(&trial.form);
  return rotation == nullptr || !has_growth(*rotation);
}
bool with_exact_angles(const Trial& trial) { return has_exact_angles(trial.form); }
// Scalings that depend on the sequence length may differ for each length.
bool whatever_the_length(const Trial& trial) {
  return !trial.scheme || length_need_of(*trial.scheme) != LengthNeed::kSequence;
}

// Queries before FIRE's threshold are treated as if they were at it, so their position matters only beyond it.
bool past_the_threshold(const Trial& trial) {
  const auto* const fire = trial.scheme ? std::get_if<Fire>(&*trial.scheme) : nullptr;
  return fire != nullptr && static_cast<double>(trial.length) > 1.5 * fire->threshold;
}

// A temperature whose factor changes within the length.
bool of_changing_factor(const Trial& trial) {
  const auto* const nothing = std::get_if<Nothing>(&trial.form);
  return nothing != nullptr && nothing->temperature &&
         factor_at(*nothing->temperature, trial.length - 1) != factor_at(*nothing->temperature, 0);
}

// Several properties: P::kUnique | P::kBounded.
struct Properties {
  std::uint32_t bits;
  constexpr Properties(Property one)
      : bits(1U << static_cast<unsigned>(one)) {}  // NOLINT(google-explicit-constructor)
  constexpr Properties operator|(Properties other) const { return other.bits |= bits, other; }
  constexpr bool has(Property one) const { return (bits & Properties(one).bits) != 0; }
};
constexpr Properties operator|(Property one, Property other) { return Properties(one) | other; }

struct Claimed {
  std::string_view who;  // a scheme's name, or a kind of form
  Properties properties;
  Claim claim;
  bool (*when)(const Trial&) = always;
};

constexpr Claim kHolds = Claim::kHolds, kFails = Claim::kFails, kOpen = Claim::kNone;
using P = Property;

// The first matching line counts.
constexpr std::array kClaims = {
    // Schemes that differ from their kind.
    Claimed{"steps", P::kLinearShift, kFails, of_lines_that_rise},
    Claimed{"steps", P::kResolvable, kFails,
            [](const Trial& t) { return *t.scheme == for_proving(Scheme(Steps{})); }},
    Claimed{"kerple", P::kMonotone | P::kAnyLength, kHolds},
    Claimed{"sandwich", P::kMonotone, kFails, [](const Trial& t) { return t.length >= 512; }},
    Claimed{"swin", P::kAnyLength, kFails},
    Claimed{"log-cpb", P::kAnyLength, kFails},
    Claimed{"decomposed", P::kAnyLength, kFails},
    Claimed{"t5", P::kAnyLength, kHolds},
    Claimed{"sandwich", P::kAnyLength, kHolds},

    Claimed{"temperature", P::kRelative, kFails, of_changing_factor},

    // Weights are random or trained: a mixture is not a rotation, and its rows are arbitrary.
    Claimed{"fope", P::kRelative, kFails, of_some_motion},
    Claimed{"fope", P::kUnique | P::kLinearShift | P::kMonotone | P::kSmooth, kOpen},
    // Frequencies are of any size and either sign.
    Claimed{"rope-mixed", P::kMonotone | P::kSmooth, kOpen},

    Claimed{"nothing", P::kConsistent | P::kAnyLength | P::kSeesOrderCausal, kHolds},
    Claimed{"nothing", P::kSeesOrder, kFails},

    Claimed{"waves", P::kUnique | P::kSeesOrder | P::kVaried, kHolds, of_some_motion},
    Claimed{"waves", P::kBounded | P::kConsistent | P::kAnyLength | P::kSeesOrderCausal, kHolds},
    Claimed{"waves", P::kLinearShift | P::kDotByDistance, kHolds, of_whole_exact_pairs},
    Claimed{"waves", P::kMonotone, kFails, of_enough_cycles},
    Claimed{"waves", P::kRelative, kFails, of_some_motion},
    Claimed{"waves", P::kSmooth, kHolds, of_slow_waves},

    Claimed{"rows", P::kConsistent | P::kSeesOrder | P::kSeesOrderCausal, kHolds},
    Claimed{"rows", P::kAnyLength, kFails},

    Claimed{"lines", P::kUnique, kHolds, [](const Trial& t) { return t.length <= 4096 && of_lines_that_rise(t); }},
    Claimed{"lines", P::kBounded | P::kDotByDistance | P::kRelative, kFails, of_lines_that_rise},
    Claimed{"lines", P::kConsistent | P::kAnyLength | P::kSeesOrderCausal, kHolds},
    Claimed{"lines", P::kVaried, kFails},
    Claimed{"lines", P::kSmooth, kHolds, [](const Trial& t) { return t.length >= 16 && of_lines_that_rise(t); }},

    Claimed{"rotation", P::kUnique | P::kSeesOrder, kHolds, of_some_motion},
    Claimed{"rotation", P::kBounded | P::kAnyLength, kHolds, without_growth},
    Claimed{"rotation", P::kConsistent, kHolds, whatever_the_length},
    Claimed{"rotation", P::kLinearShift, kHolds, of_whole_exact_pairs},
    Claimed{"rotation", P::kMonotone, kFails,
            [](const Trial& t) { return of_enough_cycles(t) && without_growth(t); }},
    Claimed{"rotation", P::kRelative, kHolds, with_exact_angles},
    Claimed{"rotation", P::kSmooth, kHolds, [](const Trial& t) { return of_slow_waves(t) && without_growth(t); }},
    Claimed{"rotation", P::kSeesOrderCausal, kHolds},

    Claimed{"slopes", P::kConsistent | P::kAnyLength | P::kMonotone | P::kRelative | P::kSeesOrderCausal, kHolds},
    Claimed{"slopes", P::kSeesOrder, kHolds,
            [](const Trial& t) {
              const auto* const alibi = t.scheme ? std::get_if<Alibi>(&*t.scheme) : nullptr;
              return alibi == nullptr || alibi->scale > 1e-3;
            }},

    Claimed{"distance-table", P::kConsistent | P::kRelative | P::kSeesOrder | P::kSeesOrderCausal, kHolds},

    Claimed{"distance-vectors", P::kConsistent | P::kAnyLength | P::kRelative | P::kSeesOrder | P::kSeesOrderCausal,
            kHolds},

    Claimed{"distance-ratios", P::kConsistent | P::kAnyLength | P::kSeesOrder | P::kSeesOrderCausal, kHolds},
    Claimed{"distance-ratios", P::kRelative, kFails, past_the_threshold},

    Claimed{"gate-sums", P::kAnyLength | P::kMonotone | P::kSeesOrder | P::kSeesOrderCausal, kHolds},
    Claimed{"gate-sums", P::kRelative, kFails},

    Claimed{"counted-gates", P::kAnyLength | P::kSeesOrderCausal, kHolds},
    Claimed{"counted-gates", P::kRelative, kFails, [](const Trial& t) { return t.has_random_weights; }},
    Claimed{"counted-gates", P::kSeesOrder, kHolds, [](const Trial& t) { return t.has_random_weights; }},
};

}  // namespace

Claim claim_of(Property property, const Trial& trial) {
  if (!trial.scheme) return kOpen;  // nothing is expected of a caller's own form
  const std::string_view name = name_of(*trial.scheme), kind = kind_of(trial.form);
  for (const Claimed& claimed : kClaims) {
    if (!claimed.properties.has(property) || (claimed.who != name && claimed.who != kind)) continue;
    return claimed.when(trial) ? claimed.claim : kOpen;
  }
  return kOpen;
}

}  // namespace posenc::properties
