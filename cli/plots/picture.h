#pragma once

#include <string>

#include "cli/plots/figure.h"
#include "cli/plots/gnuplot_script.h"

namespace posenc::cli {

/// The contents of a file that shows the figure. SVG is bit-identical for the same version of gnuplot.
std::string picture_of(const Figure& figure, PictureFormat format, int width, int height);

/// An SVG sized for a phone, with text of the usual size, because a scaled-down wide picture would be unreadable.
std::string narrow_svg_of(const Figure& figure, const std::string& id);

/// An SVG of the figure's own size to embed in a page: <svg …>…</svg>, with the figure's title as its name.
/// `id` is prefixed to all ids in it, so that a page may contain several.
std::string svg_of(const Figure& figure, const std::string& id);

/// The figure as text of at most `columns`, for a terminal. Without colour, letters distinguish the lines.
std::string terminal_text(const Figure& figure, int columns, bool colour);

/// How many points a terminal of this size can show across a panel.
int terminal_points(int columns);
/// How many rows of cells a heat map can have.
int terminal_cells_down(bool colour);

}  // namespace posenc::cli
