#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/prepare_options.h"

namespace posenc {

/// Log-spaced continuous position bias: a small trained network computes the bias from the offset between two patches on a
/// logarithmic scale, so that a window larger than the trained one needs little extrapolation.
///
///   bias(h, m, n) = 16 σ( Σ_j V_hj · max(0, b_j + Σ_a U_ja · x_a) )
///   x_a = sign(δ_a) · log2(1 + 8 |δ_a| / (T_a − 1)) / 3,   δ = m − n
///
/// T is the window that the network was trained with; x has one number for each axis of the window. Liu et al., 2021,
/// "Swin Transformer V2: Scaling Up Capacity and Resolution". As in transformers 5.16 (d56c55bf), modeling_swinv2.py.
struct LogCpb {
  static constexpr std::string_view name = "log-cpb";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula =
      "score + 16 sigmoid(MLP(x))[h], x = sign(m-n) log2(1 + 8|m-n|/(T-1))/3 for each axis";
  static constexpr std::string_view used_by = "Swin Transformer V2, Swin2SR";

  std::int64_t heads = 4;
  std::vector<std::int64_t> window = grid_of(7, 7);
  std::vector<std::int64_t> trained_window = {};
  std::vector<double> hidden_weights = {};
  std::vector<double> hidden_biases = {};
  std::vector<double> output_weights = {};

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("heads", &LogCpb::heads, "attention heads");
    visit("window", &LogCpb::window, "extents of the window, 1 to 3 (default 7,7)");
    visit("trained_window", &LogCpb::trained_window,
          "extents that the network was trained with; none: those of the window (pretrained_window_size)");
    visit("hidden_weights", &LogCpb::hidden_weights, "the network's first layer: unit by unit, one for each axis");
    visit("hidden_biases", &LogCpb::hidden_biases, "one for each hidden unit");
    visit("output_weights", &LogCpb::output_weights, "its second layer: head by head, one for each hidden unit");
  }
  /// A network of 8 hidden units.
  template <class Draw> bool draw_trained(Draw&& next) {
    if (!hidden_weights.empty() || !hidden_biases.empty() || !output_weights.empty()) return false;
    constexpr std::size_t kHidden = 8;
    if (heads < 1 || heads > 65536 || window.size() > 3) return false;  // what prepare() refuses
    const auto fill = [&](std::vector<double>& values, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) values.push_back(next());
    };
    fill(hidden_weights, kHidden * window.size());
    fill(hidden_biases, kHidden);
    fill(output_weights, kHidden * static_cast<std::size_t>(heads));
    return true;
  }
  bool operator==(const LogCpb&) const = default;
};

/// Computes the table of all offsets within the window. Positions have as many axes as the window, and any two must fit
/// into one window.
/// Range: heads 1 to 65536, extents 1 to 256, at most 2^22 numbers in all; an extent of trained_window at least 2.
Bias prepare(const LogCpb& scheme, const PrepareOptions& options = {});

struct LogCpbGradient {
  std::vector<double> hidden_weights, hidden_biases, output_weights;
};
/// The gradient of the network, computed from that of the table, as bias_backward returns it for the form of this scheme.
/// d_table is [rows, heads], dense. Throws: Error if its size does not match.
LogCpbGradient backward(const LogCpb& scheme, std::span<const double> d_table);

}  // namespace posenc
