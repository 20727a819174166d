#pragma once

#include "posenc/figures.h"

namespace posenc::cli {

// A figure is made by the library; this room draws it, by gnuplot or in a terminal.
using figures::Axis;
using figures::AxisScale;
using figures::Band;
using figures::Drawing;
using figures::Envelope;
using figures::Figure;
using figures::Frame;
using figures::HeatMap;
using figures::Panel;
using figures::PanelRow;
using figures::Rule;
using figures::Series;
using figures::Tick;
using figures::Words;

/// The panel with one axis widened so that a unit is as long on both, where it is `width` by `height` large.
Panel with_equal_units(Panel panel, double width, double height);

}  // namespace posenc::cli
