#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// The second bad idea: a random vector that changes by the same constant at every position. Every position
/// is unique, but the difference between neighbours is the same vector everywhere, and values grow without bound.
///
///   P(p)_j = start_j + step · p,   start_j uniform in [−1, 1) from the seed (SplitMix64)
struct Shift {
  static constexpr std::string_view name = "shift";
  static constexpr std::string_view family = "addition";
  static constexpr std::string_view formula = "x + start + step·p, with a random start";
  static constexpr std::string_view used_by = "no model: a bad idea, shown for comparison";

  std::int64_t width = 512;
  double step = 0.02;
  std::int64_t seed = 1;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("width", &Shift::width, "features per token (d_model)");
    visit("step", &Shift::step, "increment per position, the same in every feature");
    visit("seed", &Shift::seed, "seed of the random start");
  }
  bool operator==(const Shift&) const = default;
};

/// Range: width 1 to 2^20, finite step.
Addition prepare(const Shift& scheme, const PrepareOptions& options = {});

}  // namespace posenc
