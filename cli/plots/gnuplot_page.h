#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/plots/end_labels.h"
#include "cli/plots/figure.h"
#include "cli/plots/gnuplot_script.h"
#include "cli/plots/palette.h"

namespace posenc::cli {

// All lengths are in pixels of a page 900 wide; they scale with the page.
inline constexpr double kSmallText = 12, kText = 13, kTitleText = 18;
inline constexpr double kCharacter = 7.1;  // width of most letters of the small text
inline constexpr double kLineHeight = 17;
inline constexpr double kSample = 24;  // the line sample before a name
inline constexpr double kColourBar = 12;

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  double width() const { return right - left; }
  double height() const { return bottom - top; }
};

inline constexpr double kEdge = 22;  // page margin

/// The height of the ticks and the label of the x axis.
double below_axis(const Panel& panel);
double text_width(std::string_view text);
double widest(const std::vector<Tick>& ticks);
/// How many ticks a vertical axis of this height has room for.
int upright_ticks(double height);

/// On a narrow page, the names of several lines are below their panel, in columns, to leave room for the data.
struct NamesBelow {
  int columns = 0, rows = 0;  // 0: the names are next to the panel
  double height() const { return rows == 0 ? 0 : rows * kLineHeight + 8; }
};
NamesBelow names_below(const Panel& panel, double page_width);

/// Builds the gnuplot script for one page. The origin is at the top left.
class GnuplotPage {
 public:
  GnuplotPage(PictureFormat format, int width, int height, double scale = 0);

  Box box() const { return page_; }
  /// Adds text that the next panel, or flush_labels, draws. `align` is gnuplot's: left, center, right.
  void label(std::string_view words, double x, double y, std::string_view align, double size, Rgb colour,
             std::string_view more = "");
  /// Draws only the pending labels.
  void flush_labels();
  /// Draws a panel with its data in this area; axes and titles are outside it.
  void draw_panel(const Panel& given, const Box& room);
  /// Returns the whole script.
  std::string take();

 private:
  template <class... T> void add(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(values)...);
  }

  double points(double pixels) const;
  double across(double x) const { return x / page_.right; }
  double up(double y) const { return 1 - y / page_.bottom; }

  void set_area(const Box& area);
  void set_axis(char name, const Axis& axis, int wanted);
  void draw_objects(const Panel& panel, const Box& area);
  void draw_rules(const Panel& panel, const Box& area);
  void draw_names(const Panel& panel, const Box& area);
  void draw_name(const EndLabel& end, double x, double y);
  void draw_data(const Panel& panel);
  std::string begin_data();
  std::string series_plot(const Series& series);
  std::string heat_map_plot(const HeatMap& map);
  void draw_colour_bar(const HeatMap& map, const Box& area);

  PictureFormat format_;
  double scale_;
  Box page_ = {};
  int blocks_ = 0;
  std::string text_;
};

}  // namespace posenc::cli
