#include "cli/plots/gnuplot_page.h"

#include <algorithm>
#include <cmath>

#include "cli/plots/end_labels.h"
#include "cli/plots/ticks.h"
#include "cli/system/terminal.h"

namespace posenc::cli {
namespace {

void move(std::vector<double>& values, double by) {
  for (double& value : values) value -= by;
}

// gnuplot receives too few digits to distinguish neighbouring positions far from 0. The axis is then shifted to start
// at 0, and its ticks show the true positions.
void bring_near(Panel& panel, bool is_x, int ticks) {
  Axis& axis = is_x ? panel.x : panel.y;
  const double range = axis.most - axis.least, by = axis.least;
  if (axis.scale == AxisScale::kLog || range > 1e-5 * std::max(std::fabs(axis.least), std::fabs(axis.most))) return;
  axis.ticks = ticks_of(axis, ticks);
  for (Tick& tick : axis.ticks) tick.at -= by;
  axis.least = 0;
  axis.most = range;
  if (panel.heat_map) move(is_x ? panel.heat_map->columns : panel.heat_map->rows, by);
  for (Series& series : panel.series) move(is_x ? series.x : series.y, by);
  for (Envelope& envelope : panel.envelopes) {
    if (is_x) move(envelope.x, by);
    if (!is_x) move(envelope.low, by);
    if (!is_x) move(envelope.high, by);
  }
  for (Band& band : panel.bands) {
    if (is_x) band = {band.from - by, band.to - by, band.text};
  }
  for (Rule& rule : panel.rules) {
    if (rule.vertical == is_x) rule.at -= by;
  }
  for (Words& words : panel.words) (is_x ? words.x : words.y) -= by;
  for (Frame& frame : panel.frames) {
    (is_x ? frame.left : frame.low) -= by;
    (is_x ? frame.right : frame.high) -= by;
  }
}

// A heat map keeps its range and leaves part of the area unused; other panels get a wider range.
Box fitted(Box area, const Panel& panel) {
  const double ratio = (panel.x.most - panel.x.least) / (panel.y.most - panel.y.least);
  if (area.width() > area.height() * ratio) {
    area.right = area.left + area.height() * ratio;
  } else {
    area.bottom = area.top + area.width() / ratio;
  }
  return area;
}

std::string paler(Rgb colour) {
  const auto pale = [](std::uint8_t part) { return static_cast<std::uint8_t>(part + (255 - part) * 6 / 10); };
  return hex({pale(colour.red), pale(colour.green), pale(colour.blue)});
}

}  // namespace

double text_width(std::string_view text) { return kCharacter * columns_of(text); }

double widest(const std::vector<Tick>& ticks) {
  double width = 0;
  for (const Tick& tick : ticks) width = std::max(width, text_width(tick.text));
  return width;
}

int upright_ticks(double height) { return std::max(2, static_cast<int>(height / 42)); }

double below_axis(const Panel& panel) { return (panel.x.shown ? 20 : 0) + (panel.x.label.empty() ? 0 : 20); }

NamesBelow names_below(const Panel& panel, double page_width) {
  constexpr double kNarrowPage = 480;
  const std::vector<std::string> names = end_names(panel);
  if (page_width > kNarrowPage || names.size() < 2) return {};
  double most = 0;
  for (const std::string& name : names) most = std::max(most, text_width(name));
  const double wide = most + kSample + 16;
  const int columns = std::max(1, static_cast<int>((page_width - 2 * kEdge) / wide));
  return {columns, (static_cast<int>(names.size()) + columns - 1) / columns};
}

GnuplotPage::GnuplotPage(PictureFormat format, int width, int height, double scale)
    : format_(format), scale_(scale > 0 ? scale : std::clamp(std::min(width / 900.0, height / 480.0), 0.5, 8.0)) {
  page_ = {0, 0, width / scale_, height / scale_};
  const std::string font = fmt::format("font 'DejaVu Sans,{:.4g}'", points(kSmallText));
  switch (format_) {
    case PictureFormat::kPng:
      add("set terminal pngcairo size {},{} noenhanced {} background rgb '#ffffff'\n", width, height, font);
      break;
    case PictureFormat::kPdf:
      add("set terminal pdfcairo size {:.6g}in,{:.6g}in noenhanced {} fontscale 1 linewidth 2 background rgb "
          "'#ffffff'\n",
          width / 72.0, height / 72.0, font);
      break;
    case PictureFormat::kSvg:
    default:
      add("set terminal svg size {},{} noenhanced {} background rgb '#ffffff'\n", width, height, font);
  }
  add("set encoding utf8\nset decimalsign '.'\nunset key\nset multiplot\n");
  add("set border 3 lw {:.3g} lc rgb '{}'\n", scale_, hex(kSoftInk));
}

std::string GnuplotPage::take() {
  add("unset multiplot\n");
  return std::move(text_);
}

// Text sizes are in pixels in gnuplot's SVG, and in 4/3 pixels or points in its PNG and PDF.
double GnuplotPage::points(double pixels) const {
  return pixels * scale_ * (format_ == PictureFormat::kSvg ? 1.0 : 0.75);
}

void GnuplotPage::label(std::string_view words, double x, double y, std::string_view align, double size, Rgb colour,
                        std::string_view more) {
  add("set label {} at screen {:.6f},{:.6f} {} font ',{:.4g}' tc rgb '{}' front {}\n", gnuplot_text(words), across(x),
      up(y), align, points(size), hex(colour), more);
}

void GnuplotPage::flush_labels() {
  add("set lmargin at screen 0\nset rmargin at screen 1\nset tmargin at screen 1\nset bmargin at screen 0\n");
  add("unset border\nunset xtics\nunset ytics\nset xrange [0:1]\nset yrange [0:1]\nplot NaN\nunset label\n");
}

void GnuplotPage::set_area(const Box& area) {
  add("set lmargin at screen {:.6f}\nset rmargin at screen {:.6f}\n", across(area.left), across(area.right));
  add("set tmargin at screen {:.6f}\nset bmargin at screen {:.6f}\n", up(area.top), up(area.bottom));
}

void GnuplotPage::set_axis(char name, const Axis& axis, int wanted) {
  if (axis.scale == AxisScale::kLog) {
    add("set logscale {}\n", name);
  } else {
    add("unset logscale {}\n", name);
  }
  add("set {}range [{:.12g}:{:.12g}]\n", name, axis.reversed ? axis.most : axis.least,
      axis.reversed ? axis.least : axis.most);
  std::string list;
  for (const Tick& tick : ticks_of(axis, wanted)) {
    list += fmt::format("{}{} {:.12g}", list.empty() ? "" : ", ", gnuplot_text(tick.text), tick.at);
  }
  if (list.empty()) {
    add("unset {}tics\n", name);
  } else {
    add("set {}tics ({}) nomirror out scale 0.4,0 tc rgb '{}'\n", name, list, hex(kSoftInk));
  }
}

void GnuplotPage::draw_panel(const Panel& given, const Box& room) {
  const bool is_map = given.equal_units && given.heat_map;
  const Box area = is_map ? fitted(room, given) : room;
  Panel panel = given.equal_units && !is_map ? with_equal_units(given, area.width(), area.height()) : given;
  const int across_ticks = std::max(2, static_cast<int>(area.width() / 85));
  bring_near(panel, true, across_ticks);
  bring_near(panel, false, upright_ticks(area.height()));
  set_area(area);
  set_axis('x', panel.x, across_ticks);
  set_axis('y', panel.y, upright_ticks(area.height()));
  const int sides = (panel.x.shown ? 1 : 0) + (panel.y.shown ? 2 : 0);
  add("set border {} lw {:.3g} lc rgb '{}'\n", sides, scale_, hex(kSoftInk));
  if (panel.heat_map || sides == 0) {
    add("unset grid\n");
  } else {
    add("set grid {} {} lt 1 lw {:.3g} lc rgb '{}'\n", panel.x.shown ? "xtics" : "noxtics",
        panel.y.shown ? "ytics" : "noytics", 0.8 * scale_, hex(kGridColour));
  }
  const double middle = (area.left + area.right) / 2;
  if (!panel.title.empty()) label(panel.title, area.left, area.top - 9, "left", kText, kInk);
  if (!panel.x.label.empty()) label(panel.x.label, middle, area.bottom + 34, "center", kSmallText, kInk);
  if (!panel.y.label.empty()) {
    const double x = area.left - widest(ticks_of(panel.y, upright_ticks(area.height()))) - 22;
    label(panel.y.label, x, (area.top + area.bottom) / 2, "center", kSmallText, kInk, "rotate by 90");
  }
  draw_objects(panel, area);
  draw_data(panel);
  add("unset label\nunset arrow\nunset object\n");
  if (panel.heat_map && panel.heat_map->shows_scale) draw_colour_bar(*panel.heat_map, area);
}

void GnuplotPage::draw_objects(const Panel& panel, const Box& area) {
  for (const Band& band : panel.bands) {
    add("set object rectangle from first {:.12g}, graph 0 to first {:.12g}, graph 1 behind fc rgb '{}' fs solid "
        "noborder\n",
        band.from, band.to, hex(kBandColour));
    const double left = area.left + area.width() * share_of(panel.x, band.from);
    const double right = area.left + area.width() * share_of(panel.x, band.to);
    label(band.text, (left + right) / 2, area.top + 12, "center", kSmallText, kSoftInk);
  }
  draw_rules(panel, area);
  for (const Words& words : panel.words) {
    label(words.text, area.left + area.width() * share_of(panel.x, words.x),
          area.bottom - area.height() * share_of(panel.y, words.y), "center", kSmallText, kInk);
  }
  for (const Frame& frame : panel.frames) {
    add("set object rectangle from first {:.12g}, first {:.12g} to first {:.12g}, first {:.12g} front fs empty "
        "border rgb '{}' lw {:.3g}\n",
        frame.left, frame.low, frame.right, frame.high, hex(kInk), 2 * scale_);
  }
  draw_names(panel, area);
}

void GnuplotPage::draw_rules(const Panel& panel, const Box& area) {
  for (const Rule& rule : panel.rules) {
    const std::string at = fmt::format("{:.12g}", rule.at);
    add("set arrow from {} to {} nohead dt (2,4) lw {:.3g} lc rgb '{}' front\n",
        rule.vertical ? "first " + at + ", graph 0" : "graph 0, first " + at,
        rule.vertical ? "first " + at + ", graph 1" : "graph 1, first " + at, 1.2 * scale_, hex(kSoftInk));
    if (rule.vertical) {
      label(rule.text, area.left + area.width() * share_of(panel.x, rule.at) + 5, area.top + 12, "left", kSmallText,
            kSoftInk);
    } else {
      label(rule.text, area.left + 6, area.bottom - area.height() * share_of(panel.y, rule.at) - 8, "left",
            kSmallText, kSoftInk);
    }
  }
}

void GnuplotPage::draw_name(const EndLabel& end, double x, double y) {
  const LineStyle style = line_style(end.style);
  add("set arrow from screen {:.6f},{:.6f} to screen {:.6f},{:.6f} nohead lw {:.3g} dt {} lc rgb '{}' front\n",
      across(x), up(y), across(x + kSample), up(y), (end.is_area ? 8 : 2) * scale_,
      end.is_area ? "solid" : style.dashes, end.is_area ? paler(style.colour) : hex(style.colour));
  label(end.name, x + kSample + 5, y, "left", kSmallText, kInk);
}

void GnuplotPage::draw_names(const Panel& panel, const Box& area) {
  if (const NamesBelow below = names_below(panel, page_.right); below.rows > 0) {
    const double first = area.bottom + below_axis(panel) + 12, width = (page_.right - 2 * kEdge) / below.columns;
    int place = 0;
    std::vector<EndLabel> ends = end_labels(panel, area.height(), kLineHeight);
    std::reverse(ends.begin(), ends.end());  // from top to bottom
    for (const EndLabel& end : ends) {
      const int column = place % below.columns, row = place / below.columns;
      draw_name(end, kEdge + width * column, first + kLineHeight * row);
      ++place;
    }
    return;
  }
  for (const EndLabel& end : end_labels(panel, area.height(), kLineHeight)) {
    const double y = area.bottom - end.height;
    if (has_one_name(panel)) {  // no other name to distinguish it from
      label(end.name, area.right + 12, y, "left", kSmallText, kInk);
      continue;
    }
    draw_name(end, area.right + 8, y);
  }
}

void GnuplotPage::draw_data(const Panel& panel) {
  std::string plots;
  const auto plot = [&](const std::string& how) { plots += (plots.empty() ? "plot " : ", \\\n  ") + how; };
  if (panel.heat_map) plot(heat_map_plot(*panel.heat_map));
  for (const Envelope& envelope : panel.envelopes) {
    const std::string name = begin_data();
    for (std::size_t i = 0; i < envelope.x.size(); ++i) {
      add("{:.9g} {:.9g} {:.9g}\n", envelope.x[i], envelope.low[i], envelope.high[i]);
    }
    add("EOD\n");
    plot(fmt::format("{} using 1:2:3 with filledcurves fc rgb '{}' fs solid noborder", name,
                     paler(line_style(envelope.style).colour)));
  }
  for (const Series& series : panel.series) plot(series_plot(series));
  if (plots.empty()) plots = "plot NaN";
  add("{}\n", plots);
}

// Starts a data block; only numbers follow, up to EOD.
std::string GnuplotPage::begin_data() {
  std::string name = fmt::format("$data{}", blocks_++);
  add("{} << EOD\n", name);
  return name;
}

std::string GnuplotPage::series_plot(const Series& series) {
  const std::string name = begin_data();
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (std::isfinite(series.y[i])) {
      add("{:.9g} {:.9g}\n", series.x[i], series.y[i]);
    } else {
      add("\n");  // a gap
    }
  }
  add("EOD\n");
  const LineStyle style = line_style(series.style);
  const std::string colour = fmt::format("lc rgb '{}'", hex(style.colour));
  switch (series.drawing) {
    case Drawing::kDots:
      return fmt::format("{} using 1:2 with points pt {} ps {:.3g} {}", name, style.marker, 0.55 * scale_, colour);
    case Drawing::kBars:
      return fmt::format("{} using 1:2:(0.7) with boxes fs solid noborder {}", name, colour);
    case Drawing::kLineAndDots:
      return fmt::format("{} using 1:2 with linespoints pt {} ps {:.3g} lw {:.3g} dt {} {}", name, style.marker,
                         0.55 * scale_, 2 * scale_, style.dashes, colour);
    case Drawing::kSteps:
    case Drawing::kLine:
    default:
      return fmt::format("{} using 1:2 with {} lw {:.3g} dt {} {}", name,
                         series.drawing == Drawing::kSteps ? "steps" : "lines", 2 * scale_, style.dashes, colour);
  }
}

// An image needs two rows and two columns; anything smaller is drawn cell by cell.
std::string GnuplotPage::heat_map_plot(const HeatMap& map) {
  const std::string name = begin_data();
  const auto half_step = [](const std::vector<double>& at) { return at.size() < 2 ? 0.5 : (at[1] - at[0]) / 2; };
  const bool is_image = map.columns.size() > 1 && map.rows.size() > 1;
  const double wide = half_step(map.columns), high = half_step(map.rows);
  std::size_t cell = 0;
  for (const double y : map.rows) {
    for (const double x : map.columns) {
      const Rgb colour = heat_colour(map.values[cell++], map.least, map.most);
      if (is_image) {
        add("{:.9g} {:.9g} {} {} {}\n", x, y, colour.red, colour.green, colour.blue);
      } else {
        add("{:.9g} {:.9g} {:.9g} {:.9g} {:.9g} {:.9g} {}\n", x, y, x - wide, x + wide, y - high, y + high,
            (colour.red * 256 + colour.green) * 256 + colour.blue);
      }
    }
  }
  add("EOD\n");
  if (is_image) return fmt::format("{} using 1:2:3:4:5 with rgbimage", name);
  return fmt::format("{} using 1:2:3:4:5:6:7 with boxxyerror fs solid noborder lc rgb variable", name);
}

void GnuplotPage::draw_colour_bar(const HeatMap& map, const Box& area) {
  Panel bar;
  bar.x.shown = false;
  bar.y = {.label = map.label, .least = map.least, .most = map.most};
  HeatMap shades{.columns = {0.25, 0.75}, .least = map.least, .most = map.most, .shows_scale = false};
  constexpr int kShades = 128;
  for (int i = 0; i < kShades; ++i) {
    const double value = map.least + (map.most - map.least) * (i + 0.5) / kShades;
    shades.rows.push_back(value);
    shades.values.insert(shades.values.end(), 2, value);
  }
  bar.heat_map = std::move(shades);
  const Box box = {area.right + 12, area.top, area.right + 12 + kColourBar, area.bottom};
  set_area(box);
  set_axis('x', bar.x, 0);
  set_axis('y', {.least = map.least, .most = map.most, .shown = false}, 0);
  add("unset grid\nset border 15 lw {:.3g} lc rgb '{}'\n", 0.5 * scale_, hex(kSoftInk));
  double width = 0;
  for (const Tick& tick : ticks_of(bar.y, 4)) {
    const double y = box.bottom - box.height() * share_of(bar.y, tick.at);
    label(tick.text, box.right + 6, y, "left", kSmallText, kSoftInk);
    width = std::max(width, text_width(tick.text));
  }
  if (!map.label.empty()) {
    label(map.label, box.right + 6 + width + 12, (box.top + box.bottom) / 2, "center", kSmallText, kInk,
          "rotate by 90");
  }
  draw_data(bar);
  add("unset label\n");
}

}  // namespace posenc::cli
