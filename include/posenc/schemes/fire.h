#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/prepare_options.h"

namespace posenc {

/// A small trained network computes the bias from the distance divided by the query's position. Its input is between 0 and
/// 1 at every length, so it never leaves the range it was trained on.
///
///   bias(h, m, n) = f_h( ψ(|n − m|) / (ψ(max(m, threshold)) + epsilon) ),   ψ(x) = ln(|c|·x + 1)
///   f_h(x) = output_biases_h + Σ_j output_weights_hj · max(0, hidden_weights_j · x + hidden_biases_j)
///
/// m is the query's position. Li et al., 2023, "Functional Interpolation for Relative Positions Improves Long Context
/// Transformers". The paper's learned threshold is |multiplier · initial|, one number here.
struct Fire {
  static constexpr std::string_view name = "fire";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula = "score + f_h(psi(|n-m|) / psi(max(m, threshold))), psi(x) = ln(c*x+1)";
  static constexpr std::string_view used_by = "research on length extrapolation";

  double c = 0.1;
  double threshold = 512.0;
  double epsilon = 1e-6;
  std::vector<double> hidden_weights = {};
  std::vector<double> hidden_biases = {};
  std::vector<double> output_weights = {};
  std::vector<double> output_biases = {};

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("c", &Fire::c, "c in psi: the larger, the sooner distances are compressed");
    visit("threshold", &Fire::threshold, "earlier queries are normalised as if they had this position");
    visit("epsilon", &Fire::epsilon, "added to the denominator");
    visit("hidden_weights", &Fire::hidden_weights, "first layer of the network: one weight per hidden unit");
    visit("hidden_biases", &Fire::hidden_biases, "first layer: one bias per hidden unit");
    visit("output_weights", &Fire::output_weights, "second layer: for each head, one weight per hidden unit");
    visit("output_biases", &Fire::output_biases, "second layer: one bias per head");
  }
  LengthNeed needs_length() const { return LengthNeed::kPositions; }
  /// A network of 8 hidden units for 4 heads.
  template <class Draw> bool draw_trained(Draw&& next) {
    if (!hidden_weights.empty() || !output_biases.empty()) return false;
    constexpr std::size_t kHeads = 4, kHidden = 8;
    const auto fill = [&](std::vector<double>& values, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) values.push_back(next());
    };
    hidden_biases.clear();
    output_weights.clear();
    fill(hidden_weights, kHidden);
    fill(hidden_biases, kHidden);
    fill(output_weights, kHeads * kHidden);
    fill(output_biases, kHeads);
    return true;
  }
  bool operator==(const Fire&) const = default;
};

/// Computes the logarithms of the positions and distances 0 … length − 1; larger ones are rejected. Needs a length.
/// Range: everything finite; c not 0, threshold above 0, epsilon at least 0; length 1 to 2^20.
Bias prepare(const Fire& scheme, const PrepareOptions& options = {});

}  // namespace posenc
