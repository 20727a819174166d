#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/forms.h"
#include "posenc/json.h"
#include "posenc/scheme.h"

namespace posenc::figures {

// A figure as plain values: numbers, axes, titles and names. It does not depend on a renderer, so that the program, a web
// page and a notebook draw the same figure from the same numbers.

enum class AxisScale : std::uint8_t { kLinear, kLog };

struct Tick {
  double at = 0;
  std::string text = {};
};

struct Axis {
  std::string label = {};
  double least = 0, most = 1;
  AxisScale scale = AxisScale::kLinear;
  bool reversed = false;  // the smallest value is at the top (or right)
  bool shown = true;
  std::vector<Tick> ticks = {};  // empty: the renderer picks round numbers
};

enum class Drawing : std::uint8_t { kLine, kDots, kLineAndDots, kSteps, kBars };

/// Points in order; a y of NaN is a gap. `style` selects colour and dashes from the palette.
struct Series {
  std::string name = {};  // written next to its end; empty: no label
  std::vector<double> x = {}, y = {};
  int style = 0;
  Drawing drawing = Drawing::kLine;
};

/// A series that oscillates too fast to draw: its range is shaded instead of a misleading line.
struct Envelope {
  std::string name = {};
  std::vector<double> x = {}, low = {}, high = {};
  int style = 0;
};

/// A shaded interval of the x axis, and its meaning.
struct Band {
  double from = 0, to = 0;
  std::string text = {};
};

/// A line across the panel at a notable value.
struct Rule {
  bool vertical = false;
  double at = 0;
  std::string text = {};
};

/// Text centred at a point.
struct Words {
  double x = 0, y = 0;
  std::string text = {};
};

/// An outline around part of a panel.
struct Frame {
  double left = 0, right = 0, low = 0, high = 0;
};

/// A value per cell, shown as a colour. Cells with NaN are grey.
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
  double width = 1;          // relative to the other panels of the row
};

struct PanelRow {
  std::vector<Panel> panels = {};
  double height = 1;  // relative to the other rows
};

struct Figure {
  std::string kind = {};
  std::string title = {};
  std::string subtitle = {};
  std::string note = {};  // a line below the figure: what shading means, what was omitted
  std::vector<PanelRow> rows = {};
  int width = 900, height = 540;  // the default size, in pixels
};

/// Everything in the figure as data; NaN becomes null.
Json to_json(const Figure& figure);

/// "1,000,000", "0.25", "−8": how figures write a number.
std::string grouped(double value);

// --- making one ----------------------------------------------------------------------------------------------

/// The integers from `from` up to, but not including, `to`.
struct Range {
  std::int64_t from = 0, to = 0;
  std::int64_t count() const { return to - from; }
};

/// A scheme in a figure, with its trained table if it has one. The caller owns the table's memory.
struct PlottedScheme {
  Scheme scheme = {};
  ConstTensorView weights = {};
};

/// What a figure shows. Each kind uses the fields that apply to it.
struct Request {
  std::vector<PlottedScheme> schemes = {};   ///< empty: the kind's defaults
  std::optional<Range> zoom = {};            ///< positions; for decay, distances
  std::optional<std::int64_t> at = {};       ///< fingerprint, phasors, rotation: the position
  std::optional<std::int64_t> shift = {};    ///< phasors, rotation: this many positions later
  std::optional<std::int64_t> key = {};      ///< phasors of a rotation: a query at `at` and a key here
  std::optional<std::int64_t> head = {};     ///< decay, bias: only this head; unset: a selection
  std::vector<std::int64_t> features = {};   ///< which columns of a table (grid: or pairs); empty: a selection
  Numerics numerics = Numerics::kExact;      ///< which angles
  DataType type = DataType::kF64;            ///< dots, similarity: the type that vectors are rounded to
  std::int64_t length = 0;                   ///< of the whole sequence, for schemes that need it; 0: what is shown
  std::optional<std::int64_t> trained = {};  ///< scaling: the trained length
  double factor = 8;                         ///< scaling: how many times longer the extended context is
  bool compares = false;   ///< scaling: compare the given scaling with the common ones, and show ratios
  bool as_lines = false;   ///< bias: lines against distance instead of maps
  bool log_x = false;      ///< decay: logarithmic distances, from 1
  bool log_y = false;      ///< decay: sizes |value| on a logarithmic axis
  bool has_bound = false;  ///< decay: also show RoFormer's upper bound for the scores of rotations
  std::string spec = {};   ///< ids: the prompt, as mrope_pieces takes it; empty: an example

  // the resolution of the output
  int points = 2400;                         ///< across a panel
  int cells_across = 512, cells_down = 512;  ///< of a heat map
  bool is_sketch = false;                    ///< decay, error: fewer positions are computed, as while dragging
};

/// A kind of figure.
struct Kind {
  std::string_view name;
  std::string_view summary;
  std::vector<Scheme> defaults;  ///< shown if the request has no scheme
  int most_schemes;
  Figure (*make)(const Request& request);  ///< of a request with at least one scheme
};
/// Every kind: waves, heatmap, fingerprint, phasors, rotation, dots, similarity, decay, bias, scaling, error, query-factor,
/// grid, ids.
const std::vector<Kind>& kinds();

/// The figure of this kind. Throws: Error for an unknown kind, for schemes that the kind cannot show or more of them
/// than it takes, and for a range that is too short or too long for it; the message begins with the kind or the scheme.
Figure make(std::string_view kind, const Request& request = {});

}  // namespace posenc::figures
