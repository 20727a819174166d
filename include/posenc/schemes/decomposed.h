#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/prepare_options.h"

namespace posenc {

/// The offset of two patches is split by axis: a trained vector for the distance in rows and another for the distance in
/// columns, each dotted with the query.
///
///   score(m, n) = scale · q_m·k_n + Σ_a q_m·T_a[m_a − n_a + W_a − 1]
///
/// W are the extents of the window (or of the whole grid), m and n positions with one coordinate for each. The products
/// are not scaled. Li et al., 2022, "MViTv2" and "Exploring Plain Vision Transformer Backbones for Object Detection";
/// SAM (transformers 5.16, models/sam/modeling_sam.py, get_decomposed_rel_pos). Tables that were trained for another
/// extent, `trained_window`, are resized: 2V − 1 rows become 2W − 1 by linear interpolation, row i from
/// x = (i + 1/2)·(2V − 1)/(2W − 1) − 1/2, at least 0 (get_rel_pos).
struct Decomposed {
  static constexpr std::string_view name = "decomposed";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula = "score + q.H[row_m - row_n] + q.W[column_m - column_n]";
  static constexpr std::string_view used_by = "ViTDet, SAM, SAM-HQ, SegGPT, GOT-OCR 2, DeepSeek-OCR";

  std::vector<std::int64_t> window = grid_of(14, 14);
  std::vector<std::int64_t> trained_window = {};

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("window", &Decomposed::window, "size of the window or grid along each of 1 to 3 axes (default 14,14)");
    visit("trained_window", &Decomposed::trained_window, "size for which the tables were trained (default: window)");
  }
  TrainedTable trained_table() const;
  bool operator==(const Decomposed&) const = default;
};

/// The tables are the caller's, concatenated in the order of the axes: [Σ (2V_a − 1), features] for all heads, or with a
/// leading axis of heads: prepare(Decomposed{…}, {.weights = …}); for SAM, rel_pos_h and then rel_pos_w. Only attention
/// can add it. Positions have as many axes as the window, and any two must fit into one window.
/// Range: extents 1 to 4096, 1 to 3 of them, and as many trained ones or none.
Bias prepare(const Decomposed& scheme, const PrepareOptions& options = {});

/// The gradient of the trained tables, [Σ (2V_a − 1), features], computed from that of the form's tables,
/// [Σ (2W_a − 1), features], which attention_backward writes to query_vectors: the adjoint of resizing.
/// Throws: Error if the number of values does not match.
std::vector<double> backward(const Decomposed& scheme, std::span<const double> d_vectors);

}  // namespace posenc
