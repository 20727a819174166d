#pragma once

#include "cli/plots/canvas.h"
#include "cli/plots/figure.h"

namespace posenc::cli {

/// An area of a canvas, in cells.
struct Area {
  int left = 0, top = 0, columns = 0, rows = 0;
  int right() const { return left + columns; }
  int bottom() const { return top + rows; }
};

/// How many cells the axes, title and names of a panel take around its data.
struct Margins {
  int left = 0, right = 0, top = 0, bottom = 0;
};
Margins margins_of(const Panel& panel, int rows);

/// Draws a panel, its data within the area and the rest around it.
void paint_panel(Canvas& canvas, const Panel& panel, const Area& area, bool colour);

}  // namespace posenc::cli
