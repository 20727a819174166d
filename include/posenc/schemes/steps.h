#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// The first bad idea: count in tiny steps, the same in every feature. Included for comparison, not for use: all features
/// carry the same information, and a step of 0.0001 is negligible next to embeddings of size 0.5.
///
///   P(p) = step · p   in every feature
struct Steps {
  static constexpr std::string_view name = "steps";
  static constexpr std::string_view family = "addition";
  static constexpr std::string_view formula = "x + step·p in every feature";
  static constexpr std::string_view used_by = "no model: a bad idea, shown for comparison";

  std::int64_t width = 512;
  double step = 0.0001;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("width", &Steps::width, "features per token (d_model)");
    visit("step", &Steps::step, "increment per position");
  }
  bool operator==(const Steps&) const = default;
};

/// Range: width 1 to 2^20, finite step.
Addition prepare(const Steps& scheme, const PrepareOptions& options = {});

}  // namespace posenc
