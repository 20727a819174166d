#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/situation.h"

namespace posenc {

/// The offset of two patches is taken apart: a trained vector for the rows between them, another for the columns, each
/// multiplied with the query.
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

/// The tables are the caller's, one below the other in the order of the axes, [Σ (2V_a − 1), features] for all heads or
/// with heads in front: prepare(Decomposed{…}, {.weights = …}), of SAM rel_pos_h, then rel_pos_w. Only attention can add
/// it. Positions have as many axes as the window, and no two of them may lie further apart than in it.
/// Range: extents 1 to 4096, 1 to 3 of them, and as many trained ones or none.
Bias prepare(const Decomposed& scheme, const Situation& now = {});

/// The gradient of the trained tables, [Σ (2V_a − 1), features], from that of the form's, [Σ (2W_a − 1), features], which
/// attention_backward gives as query_vectors: the adjoint of resizing.
/// Throws: Error for another number of values.
std::vector<double> backward(const Decomposed& scheme, std::span<const double> d_vectors);

}  // namespace posenc
