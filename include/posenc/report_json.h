#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "posenc/check.h"
#include "posenc/compare.h"
#include "posenc/diagnosis.h"
#include "posenc/json.h"
#include "posenc/model.h"

namespace posenc {

// Results as JSON: what the program prints with --json, and what C and Python read.

/// {"verdict", "best", "others", "remarks"}; "best" may be null.
Json json_of(const Diagnosis& diagnosis);
/// {"agrees", "max_abs_error", "first_difference", "diagnosis", "numerics", "advice", "verdict", "tolerance", "masked"}.
Json json_of(const CheckResult& result);

/// The waves of a group of layers at the trained length. Without frequencies if the scheme has none, or if its coordinates are
/// fractions of an image whose size is not yet known (sinusoidal with turns).
struct TrainedWaves {
  double magnitude = 1.0, softmax_factor = 1.0;
  std::vector<double> frequencies;  // radians per position
};
TrainedWaves trained_waves(const LayerGroup& group, std::optional<std::int64_t> trained_length);

/// {"layers", "layer_type", "scheme", "frequencies", …}: the frequencies are those at the trained length.
Json json_of(const LayerGroup& group, std::optional<std::int64_t> trained_length);
/// {"model_type", "layers", "parts", "trained_length", "usable_length", "warnings", "assumed", "notes"}.
Json json_of(const Model& model);
/// {"length", "agrees", "topics"}.
Json json_of(const EngineComparison& comparison);

/// Every scheme, and every scaling of rope, with its fields: name, type, default, choices and help.
Json schemes_json();
/// Every backend, and why it cannot run here, if so: [{"backend", "can_run", "why_absent"}, …].
Json backends_json();

}  // namespace posenc
