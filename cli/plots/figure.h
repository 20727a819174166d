#pragma once

#include "posenc/figures.h"

namespace posenc::cli {

// The library computes figures; this folder draws them, with gnuplot or in a terminal.
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

/// The panel with one axis extended so that a unit has the same length on both axes, at a size of `width` by
/// `height`.
Panel with_equal_units(Panel panel, double width, double height);

}  // namespace posenc::cli
