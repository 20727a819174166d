#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/prepare_options.h"

namespace posenc {

/// A trained number for each head and each offset between two patches of a window.
///
///   bias(h, m, n) = table[Σ_a (m_a − n_a + W_a − 1) · Π_(b>a) (2W_b − 1), h]
///
/// W are the window's extents, m and n positions with one coordinate for each. Liu et al., 2021, "Swin Transformer".
/// Three extents are Video Swin's window. BEiT has the same table, with three more rows for its class token.
struct Swin {
  static constexpr std::string_view name = "swin";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula = "score + table[row of (m-n), h], one row per offset within a window";
  static constexpr std::string_view used_by = "Swin Transformer, Video Swin, BEiT";

  std::int64_t heads = 4;
  std::vector<std::int64_t> window = grid_of(7, 7);

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("heads", &Swin::heads, "attention heads");
    visit("window", &Swin::window, "size of the window along each of 1 to 3 axes (default 7,7)");
  }
  TrainedTable trained_table() const;
  bool operator==(const Swin&) const = default;
};

/// The table is the caller's: prepare(Swin{…}, {.weights = view(table, {rows, heads})}), rows = Π (2W_a − 1).
/// Positions have as many axes as the window, and any two must fit into one window.
/// Range: heads 1 to 65536, extents 1 to 4096.
Bias prepare(const Swin& scheme, const PrepareOptions& options = {});

}  // namespace posenc
