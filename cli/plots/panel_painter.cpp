#include "cli/plots/panel_painter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/plots/end_labels.h"
#include "cli/plots/palette.h"
#include "cli/plots/ticks.h"
#include "cli/system/terminal.h"

namespace posenc::cli {
namespace {

// From the smallest value to the largest, without colour.
constexpr std::array<std::string_view, 5> kShades = {" ", "░", "▒", "▓", "█"};
constexpr std::string_view kNoValue = "×";

constexpr Rgb kTerminalGrey = {0x8a, 0x8a, 0x8a};
constexpr Rgb kTerminalShade = {0x58, 0x58, 0x58};

Rgb terminal_colour(int style) {
  const Rgb colour = line_style(style).colour;
  return colour == kInk ? Rgb{0xd0, 0xd0, 0xd0} : colour;  // ink is invisible on a dark screen
}

int widest_label(const std::vector<Tick>& ticks) {
  int columns = 0;
  for (const Tick& tick : ticks) columns = std::max(columns, columns_of(tick.text));
  return columns;
}

class PanelPainter {
 public:
  PanelPainter(Canvas& canvas, const Panel& panel, const Area& area, bool colour)
      : canvas_(canvas),
        panel_(panel.equal_units && !panel.heat_map ? with_equal_units(panel, area.columns * 2, area.rows * 4)
                                                    : panel),
        area_(area),
        colour_(colour) {}

  void paint() {
    if (panel_.heat_map) paint_heat_map(*panel_.heat_map);
    for (const Envelope& envelope : panel_.envelopes) paint(envelope);
    for (const Series& series : panel_.series) paint(series);
    for (const Band& band : panel_.bands) paint(band);
    for (const Rule& rule : panel_.rules) paint(rule);
    for (const Words& words : panel_.words) {
      const int column = area_.left + static_cast<int>(std::lround(share_of(panel_.x, words.x) * area_.columns));
      const int row = area_.bottom() - 1 - static_cast<int>(share_of(panel_.y, words.y) * area_.rows);
      canvas_.write(column - columns_of(words.text) / 2, row, words.text, std::nullopt);
    }
    paint_axes();
    paint_names();
    for (const Frame& frame : panel_.frames) paint(frame);
  }

 private:
  double across(double x) const { return area_.left * 2 + share_of(panel_.x, x) * (area_.columns * 2 - 1); }
  double down(double y) const { return area_.bottom() * 4 - 1 - share_of(panel_.y, y) * (area_.rows * 4 - 1); }
  bool is_within(double x, double y) const {
    return x >= area_.left * 2 && x < area_.right() * 2 && y >= area_.top * 4 && y < area_.bottom() * 4;
  }

  void paint(const Series& series) {
    const Rgb colour = terminal_colour(series.style);
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.y[i])) continue;
      const double x = across(series.x[i]), y = down(series.y[i]);
      if (!is_within(x, y)) continue;
      if (series.drawing == Drawing::kBars) {
        const double half = (across(1) - across(0)) * 0.3;
        const double zero = std::clamp(down(0), area_.top * 4.0, area_.bottom() * 4.0 - 1);
        for (double at = x - half; at <= x + half; ++at) canvas_.line(at, y, at, zero, colour);
      } else if (series.drawing == Drawing::kDots || i == 0 || !std::isfinite(series.y[i - 1])) {
        canvas_.dot(static_cast<int>(std::lround(x)), static_cast<int>(std::lround(y)), colour);
      } else {
        const double before_x = across(series.x[i - 1]), before_y = down(series.y[i - 1]);
        if (!is_within(before_x, before_y)) continue;
        if (series.drawing == Drawing::kSteps) {
          canvas_.line(before_x, before_y, x, before_y, colour);
          canvas_.line(x, before_y, x, y, colour);
        } else {
          canvas_.line(before_x, before_y, x, y, colour);
        }
      }
    }
  }

  void paint(const Envelope& envelope) {
    // The shading distinguishes an area from a dense line.
    for (std::size_t i = 0; i < envelope.x.size(); ++i) {
      const double x = across(envelope.x[i]);
      const double next = i + 1 < envelope.x.size() ? across(envelope.x[i + 1]) : x;
      const int top = static_cast<int>(std::max(down(envelope.high[i]), area_.top * 4.0)) / 4;
      const int bottom = static_cast<int>(std::min(down(envelope.low[i]), area_.bottom() * 4.0 - 1)) / 4;
      for (int column = static_cast<int>(x) / 2; column <= static_cast<int>(next) / 2; ++column) {
        for (int row = top; row <= bottom; ++row) canvas_.shade(column, row, "▒", terminal_colour(envelope.style));
      }
    }
  }

  void paint(const Band& band) {
    const int from = std::max(static_cast<int>(across(band.from)) / 2, area_.left);
    const int to = std::min(static_cast<int>(across(band.to)) / 2, area_.right() - 1);
    canvas_.write(std::max((from + to + 1 - columns_of(band.text)) / 2, area_.left), area_.top, band.text,
                  kTerminalGrey);
    for (int row = area_.top; row < area_.bottom(); ++row) {
      for (int column = from; column <= to; ++column) canvas_.shade(column, row, "░", kTerminalShade);
    }
  }

  void paint(const Rule& rule) {
    if (rule.vertical) {
      const int column = static_cast<int>(std::lround(across(rule.at))) / 2;
      canvas_.write(column + 1, area_.top, rule.text, kTerminalGrey);
      for (int row = area_.top; row < area_.bottom(); ++row) canvas_.shade(column, row, "┊", kTerminalGrey);
    } else {
      const int row = static_cast<int>(std::lround(down(rule.at))) / 4;
      if (row < area_.top || row >= area_.bottom()) return;
      canvas_.write(area_.left + 1, row, rule.text, kTerminalGrey);
      for (int column = area_.left; column < area_.right(); ++column) canvas_.shade(column, row, "┄", kTerminalGrey);
    }
  }

  void paint(const Frame& frame) {
    const int top = static_cast<int>(std::lround(std::min(down(frame.low), down(frame.high)))) / 4;
    const int bottom =
        std::max(static_cast<int>(std::lround(std::max(down(frame.low), down(frame.high)))) / 4, top + 1);
    for (int row = top; row < bottom; ++row) {
      canvas_.write(area_.left - 1, row, "▸", std::nullopt);
      canvas_.write(area_.right(), row, "◂", std::nullopt);
    }
  }

  // The value at the centre of cell (column, row), if `rows` cells cover the area's height.
  double value_at(const HeatMap& map, int column, int row, int rows) const {
    const auto nearest = [](const std::vector<double>& centres, const Axis& axis, double share) {
      const double place = axis.reversed ? 1 - share : share;
      const double value = axis.least + (axis.most - axis.least) * place;
      if (centres.size() < 2) return std::size_t{0};
      const double index = std::round((value - centres[0]) / (centres[1] - centres[0]));
      return static_cast<std::size_t>(std::clamp(index, 0.0, static_cast<double>(centres.size() - 1)));
    };
    const std::size_t x = nearest(map.columns, panel_.x, (column + 0.5) / area_.columns);
    const std::size_t y = nearest(map.rows, panel_.y, 1 - (row + 0.5) / rows);
    return map.values[y * map.columns.size() + x];
  }

  static std::string_view shade_of(double value, const HeatMap& map) {
    if (!std::isfinite(value)) return kNoValue;
    const double share = (value - map.least) / (map.most - map.least);
    const auto level = static_cast<int>(share * static_cast<double>(kShades.size()));
    return kShades[std::clamp(level, 0, static_cast<int>(kShades.size()) - 1)];
  }

  void paint_heat_map(const HeatMap& map) {
    for (int row = 0; row < area_.rows; ++row) {
      for (int column = 0; column < area_.columns; ++column) {
        if (colour_) {
          const double upper = value_at(map, column, 2 * row, 2 * area_.rows);
          const double lower = value_at(map, column, 2 * row + 1, 2 * area_.rows);
          canvas_.fill(area_.left + column, area_.top + row, "▀", heat_colour(upper, map.least, map.most),
                       heat_colour(lower, map.least, map.most));
        } else {
          canvas_.write(area_.left + column, area_.top + row, shade_of(value_at(map, column, row, area_.rows), map),
                        std::nullopt);
        }
      }
    }
  }

  void paint_axes() {
    int row = area_.top - 1;
    if (!panel_.y.label.empty())
      canvas_.write(area_.left - (panel_.y.shown ? 1 : 0), row--, panel_.y.label, kTerminalGrey);
    if (!panel_.title.empty()) canvas_.write(area_.left - (panel_.y.shown ? 1 : 0), row, panel_.title, std::nullopt);
    if (panel_.y.shown) {
      const int column = area_.left - 1;
      for (row = area_.top; row < area_.bottom(); ++row) canvas_.write(column, row, "│", kTerminalGrey);
      for (const Tick& tick : ticks_of(panel_.y, std::max(2, area_.rows / 3))) {
        const int at = static_cast<int>(std::lround(down(tick.at))) / 4;
        canvas_.write(column, at, "┤", kTerminalGrey);
        canvas_.write(column - columns_of(tick.text), at, tick.text, kTerminalGrey);
      }
    }
    int below = area_.bottom();
    if (panel_.x.shown) {
      if (panel_.y.shown) canvas_.write(area_.left - 1, below, "└", kTerminalGrey);
      for (int column = area_.left; column < area_.right(); ++column)
        canvas_.write(column, below, "─", kTerminalGrey);
      int free = 0;  // labels must not overlap
      for (const Tick& tick : ticks_of(panel_.x, std::max(2, area_.columns / 10))) {
        const int column = static_cast<int>(std::lround(across(tick.at))) / 2;
        const int begin = std::max(column - columns_of(tick.text) / 2, 0);
        canvas_.write(column, below, "┬", kTerminalGrey);
        if (begin < free || begin + columns_of(tick.text) > canvas_.columns()) continue;
        canvas_.write(begin, below + 1, tick.text, kTerminalGrey);
        free = begin + columns_of(tick.text) + 1;
      }
      below += 2;
    }
    if (!panel_.x.label.empty()) {
      canvas_.write(std::max(area_.left + (area_.columns - columns_of(panel_.x.label)) / 2, area_.left), below++,
                    panel_.x.label, kTerminalGrey);
    }
    if (panel_.heat_map && panel_.heat_map->shows_scale) paint_scale(*panel_.heat_map, below);
  }

  void paint_scale(const HeatMap& map, int row) {
    constexpr int kCells = 15;
    const std::string least = figures::grouped(map.least) + " ",
                      most = fmt::format(" {}  {}", figures::grouped(map.most), map.label);
    // Below a narrow panel, the scale starts further left.
    int column = std::max(std::min(area_.left, canvas_.columns() - columns_of(least + most) - kCells), 0);
    const auto say = [&](std::string_view text) {
      canvas_.write(column, row, text, kTerminalGrey);
      column += columns_of(text);
    };
    say(least);
    for (int i = 0; i < kCells; ++i, ++column) {
      const double value = map.least + (map.most - map.least) * (i + 0.5) / kCells;
      const Rgb colour = heat_colour(value, map.least, map.most);
      if (colour_) {
        canvas_.fill(column, row, " ", colour, colour);
      } else {
        canvas_.write(column, row, shade_of(value, map), std::nullopt);
      }
    }
    say(most);
  }

  // Without colour, a letter marks each line and its name.
  void paint_names() {
    const std::vector<EndLabel> labels = end_labels(panel_, area_.rows - 1, 1);
    std::vector<std::string> names = end_names(panel_);
    for (const EndLabel& label : labels) {
      const int row = area_.bottom() - 1 - static_cast<int>(std::lround(label.height));
      const auto index = std::find(names.begin(), names.end(), label.name) - names.begin();
      const std::string mark = colour_ ? "━" : letter(index);
      const bool is_alone = names.size() == 1;
      if (!is_alone) canvas_.write(area_.right() + 1, row, mark, terminal_colour(label.style));
      canvas_.write(area_.right() + (is_alone ? 1 : 3), row, label.name, std::nullopt);
    }
    if (colour_ || names.size() < 2) return;
    for (const Series& series : panel_.series) {
      if (series.name.empty() || series.x.empty()) continue;
      const std::size_t index = std::find(names.begin(), names.end(), series.name) - names.begin();
      const double share = (static_cast<double>(index) + 0.5) / static_cast<double>(names.size());
      const auto point = static_cast<std::size_t>(share * static_cast<double>(series.x.size() - 1));
      if (!std::isfinite(series.y[point])) continue;
      canvas_.write(static_cast<int>(across(series.x[point])) / 2, static_cast<int>(down(series.y[point])) / 4,
                    letter(index), std::nullopt);
    }
  }

  static std::string letter(std::size_t index) { return std::string(1, static_cast<char>('a' + index % 26)); }

  Canvas& canvas_;
  Panel panel_;
  Area area_;
  bool colour_;
};

}  // namespace

Margins margins_of(const Panel& panel, int rows) {
  Margins margins;
  if (panel.y.shown) margins.left = widest_label(ticks_of(panel.y, std::max(2, rows / 3))) + 1;
  const int mark = has_one_name(panel) ? 1 : 3;
  for (const std::string& name : end_names(panel)) margins.right = std::max(margins.right, columns_of(name) + mark);
  if (!panel.frames.empty()) margins.right = std::max(margins.right, 1);
  margins.top = (panel.title.empty() ? 0 : 1) + (panel.y.label.empty() ? 0 : 1);
  margins.bottom = (panel.x.shown ? 2 : 0) + (panel.x.label.empty() ? 0 : 1) +
                   (panel.heat_map && panel.heat_map->shows_scale ? 1 : 0);
  return margins;
}

void paint_panel(Canvas& canvas, const Panel& panel, const Area& area, bool colour) {
  PanelPainter(canvas, panel, area, colour).paint();
}

}  // namespace posenc::cli
