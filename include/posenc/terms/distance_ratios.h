#pragma once

#include <vector>

#include "posenc/terms/numbered.h"

namespace posenc {

/// A learned function of the distance relative to the query's position m, computed in double (FIRE). One axis.
///   x = logs[|δ|] / (max(logs[m], least) + epsilon)
///   bias(h) = output_biases[h] + Σ_j output_weights[h, j] · max(0, hidden_weights[j] · x + hidden_biases[j])
struct DistanceRatios {
  std::vector<double> logs;  // ψ(0), ψ(1) …: positions and distances must be below its size
  double least = 0.0;
  double epsilon = 0.0;
  std::vector<double> hidden_weights, hidden_biases;  // [width]
  std::vector<double> output_weights, output_biases;  // [heads, width], [heads]
};
template <> struct NumberedTerm<3> { using Type = DistanceRatios; };

}  // namespace posenc
