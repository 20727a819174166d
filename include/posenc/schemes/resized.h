#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/prepare_options.h"
#include "posenc/schemes/choice.h"

namespace posenc {

/// How a value is interpolated between trained ones; t is the distance in cells of the trained grid.
enum class ResizeFilter : std::uint8_t {
  kBicubic,   ///< Keys' kernel with a = −0.75 (−0.5 with antialias, as in torch and Pillow)
  kBilinear,  ///< 1 − |t|
};
template <> struct ChoiceNames<ResizeFilter> {
  static constexpr std::array<std::string_view, 2> value = {"bicubic", "bilinear"};
};

/// A trained table for a grid of patches, interpolated to another grid and added: for images of a size that the model was
/// not trained on. Leading rows, such as that of a class token, are not interpolated.
///
///   P(p) = table[p]                                                          for p < prefix
///   P(prefix + y·W + x) = Σ_j Σ_i w_j(y) w_i(x) · table[prefix + j·w + i]    the trained grid is h × w, the new one H × W
///
/// The centre of cell y is (y + ½)·h/H − ½ in trained cells, or with corners y·(h − 1)/(H − 1). Cells past an edge are
/// replaced by the cell at the edge. With antialias, the kernel is as wide as a new cell if that is wider than a trained
/// one, its weights sum to 1, and cells past an edge are omitted.
///
/// Dosovitskiy et al., 2020, "An Image is Worth 16x16 Words" (3.2). As torch.nn.functional.interpolate, and in
/// transformers 5.16 (d56c55bf): interpolate_pos_encoding of modeling_vit.py, modeling_dinov2.py and modeling_siglip.py
/// (bicubic), of modeling_dinov2_with_registers.py (bicubic, antialias), resize_positional_embeddings of
/// modeling_siglip2.py (bilinear, antialias), vision_utils.py for Qwen3-VL (bilinear, corners).
struct Resized {
  static constexpr std::string_view name = "resized";
  static constexpr std::string_view family = "addition";
  static constexpr std::string_view formula = "x + table of a trained grid, interpolated to the grid at hand, at p";
  static constexpr std::string_view used_by = "ViT, DeiT, DINOv2, SigLIP, SigLIP 2, Qwen3-VL's vision part";

  std::vector<std::int64_t> trained_grid = grid_of(14, 14);
  std::vector<std::int64_t> new_grid = grid_of(16, 16);
  std::int64_t width = 512;
  ResizeFilter filter = ResizeFilter::kBicubic;
  bool corners = false;
  bool antialias = false;
  std::int64_t prefix = 0;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("trained_grid", &Resized::trained_grid, "rows and columns of the trained grid (default 14,14)");
    visit("new_grid", &Resized::new_grid, "rows and columns of the new grid (default 16,16)");
    visit("width", &Resized::width, "features per token (d_model)");
    visit("filter", &Resized::filter, "how values between trained ones are made");
    visit("corners", &Resized::corners, "the corner cells of both grids coincide (align_corners; Qwen3-VL)");
    visit("antialias", &Resized::antialias, "average over a cell of a coarser grid (SigLIP 2)");
    visit("prefix", &Resized::prefix, "rows in front that are not resized (ViT's class token: 1)");
  }
  TrainedTable trained_table() const;
  bool operator==(const Resized&) const = default;
};

/// The trained table is the caller's: prepare(Resized{…}, {.weights = view(table, {rows, width})}). It is only read here;
/// the form holds the resized table, in f64 if the trained one is, otherwise in f32; each value is computed in double and
/// rounded once.
/// Positions are rows of the new grid in row-major order, after the prefix.
/// Range: extents 1 to 4096, at most 2^28 numbers; corners excludes antialias.
Addition prepare(const Resized& scheme, const PrepareOptions& options = {});

/// The gradient of the trained table, computed from that of the resized one, as add_backward returns it: [rows, width]
/// each, dense. Throws: Error if its size does not match.
std::vector<double> backward(const Resized& scheme, std::span<const double> d_table);

}  // namespace posenc
