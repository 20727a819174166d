#pragma once

#include <string>

#include "cli/plots/figure.h"
#include "cli/plots/gnuplot_script.h"

namespace posenc::cli {

/// The bytes of a file that shows the figure. SVG: the same bytes from the same gnuplot, every time.
/// Throws: Failure 3 where gnuplot is missing or fails.
std::string picture_of(const Figure& figure, PictureFormat format, int width, int height);

/// Of a phone's width, with text of the usual size: what a wide picture would shrink to could not be read.
std::string narrow_svg_of(const Figure& figure, const std::string& id);

/// As an SVG of the figure's own size, ready to stand in a page: <svg …>…</svg>, with the figure's title as its name.
/// `id` is put before all names within, so that several may stand in one page.
std::string svg_of(const Figure& figure, const std::string& id);

/// What a terminal shows: text of at most `columns`. With colour, or with letters where there is none.
std::string terminal_text(const Figure& figure, int columns, bool colour);

/// How many points a terminal of this size can show across a panel.
int terminal_points(int columns);
/// How many rows of cells it can show in a heat map.
int terminal_cells_down(bool colour);

}  // namespace posenc::cli
