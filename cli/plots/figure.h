#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/json.h"

namespace posenc::cli {

/// A picture before anybody has drawn it: numbers, words, and which number belongs to which word. It knows neither
/// gnuplot nor terminals; both draw the same figure.

enum class AxisScale : std::uint8_t { kLinear, kLog };

struct Tick {
  double at = 0;
  std::string text = {};
};

struct Axis {
  std::string label = {};
  double least = 0, most = 1;
  AxisScale scale = AxisScale::kLinear;
  bool reversed = false;  // the least at the top (or right)
  bool shown = true;
  std::vector<Tick> ticks = {};  // empty: the renderer picks round numbers
};

enum class Drawing : std::uint8_t { kLine, kDots, kSteps, kBars };

/// Points in order; y may be NaN, which is a gap. `style` picks colour and dashes from the palette.
struct Series {
  std::string name = {};  // written beside its end; empty: not named
  std::vector<double> x = {}, y = {};
  int style = 0;
  Drawing drawing = Drawing::kLine;
};

/// Between low and high there is more than can be drawn: the area is shaded in place of a line that would lie.
struct Envelope {
  std::string name = {};
  std::vector<double> x = {}, low = {}, high = {};
  int style = 0;
};

/// A stretch of the x axis that is shaded, and what it means.
struct Band {
  double from = 0, to = 0;
  std::string text = {};
};

/// A line across the panel at a value that matters.
struct Rule {
  bool vertical = false;
  double at = 0;
  std::string text = {};
};

/// Words at a point, centred.
struct Words {
  double x = 0, y = 0;
  std::string text = {};
};

/// An outline around part of a panel.
struct Frame {
  double left = 0, right = 0, low = 0, high = 0;
};

/// A value for each cell, shown as a colour. Where the value is NaN the cell is grey.
struct HeatMap {
  std::vector<double> columns = {}, rows = {};  // the cells' centres, evenly spaced
  std::vector<double> values = {};              // [rows, columns]
  double least = -1, most = 1;                  // the ends of the colour scale
  bool shows_scale = true;
  std::string label = {};  // of the colour scale
};

struct Panel {
  std::string title = {};
  Axis x = {}, y = {};
  std::optional<HeatMap> heat_map = {};
  std::vector<Band> bands = {};
  std::vector<Envelope> envelopes = {};
  std::vector<Series> series = {};
  std::vector<Rule> rules = {};
  std::vector<Words> words = {};
  std::vector<Frame> frames = {};
  bool equal_units = false;  // one unit is as long on both axes
  double width = 1;          // its share of the row
};

struct PanelRow {
  std::vector<Panel> panels = {};
  double height = 1;  // its share of the figure
};

struct Figure {
  std::string kind = {};
  std::string title = {};
  std::string subtitle = {};
  std::string note = {};  // a line below: what shading means, what was left out
  std::vector<PanelRow> rows = {};
  int width = 900, height = 540;  // in pixels, where nobody says otherwise
};

/// Everything in the figure as data.
Json to_json(const Figure& figure);

/// Makes room: at most this far from the ends of what is drawn, as a share of the range.
void fit(Axis& axis, double least, double most, double margin = 0.05);

/// The panel with one axis widened so that a unit is as long on both, where it is `width` by `height` large.
Panel with_equal_units(Panel panel, double width, double height);

}  // namespace posenc::cli
