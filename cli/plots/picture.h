#pragma once

#include <string>

#include "cli/plots/figure.h"
#include "cli/plots/gnuplot_script.h"

namespace posenc::cli {

/// The bytes of a file that shows the figure. SVG: identical bytes from the same version of gnuplot.
/// Throws: Failure 3 if gnuplot is missing or fails.
std::string picture_of(const Figure& figure, PictureFormat format, int width, int height);

/// Sized for a phone, with text of the usual size, because a shrunken wide picture would be unreadable.
std::string narrow_svg_of(const Figure& figure, const std::string& id);

/// As an SVG of the figure's own size, ready to be embedded in a page: <svg …>…</svg>, with the figure's title as its
/// name.
/// `id` is prefixed to all names within, so that one page may contain several.
std::string svg_of(const Figure& figure, const std::string& id);

/// The figure for a terminal: text of at most `columns`. In colour, or with letters without colour.
std::string terminal_text(const Figure& figure, int columns, bool colour);

/// How many points a terminal of this size can show across a panel.
int terminal_points(int columns);
/// How many rows of cells it can show in a heat map.
int terminal_cells_down(bool colour);

}  // namespace posenc::cli
