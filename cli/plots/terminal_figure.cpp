#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cli/plots/canvas.h"
#include "cli/plots/panel_painter.h"
#include "cli/plots/picture.h"
#include "cli/system/terminal.h"

namespace posenc::cli {
namespace {

constexpr int kFewestColumns = 18;  // of a panel next to others
constexpr int kPlotRows = 26;       // of all panels together
constexpr int kMostRows = 18;       // of one panel

// Panels side by side. Strips with the same number of panels share their margins, so that the data line up.
struct Strip {
  std::vector<Panel> panels;
  int rows = 0;
};

std::vector<Margins> shared_margins(const std::vector<Strip>& strips, const Strip& like) {
  std::vector<Margins> margins(like.panels.size());
  for (const Strip& strip : strips) {
    if (strip.panels.size() != like.panels.size()) continue;
    for (std::size_t i = 0; i < strip.panels.size(); ++i) {
      const Margins one = margins_of(strip.panels[i], strip.rows);
      margins[i].left = std::max(margins[i].left, one.left);
      margins[i].right = std::max(margins[i].right, one.right);
    }
  }
  for (std::size_t i = 0; i < like.panels.size(); ++i) {
    const Margins one = margins_of(like.panels[i], like.rows);
    margins.front().top = std::max(margins.front().top, one.top);
    margins.front().bottom = std::max(margins.front().bottom, one.bottom);
  }
  return margins;
}

// A multiple of the number of a map's columns, if they are few, so that all cells are equally wide.
int whole_cells(const std::vector<Strip>& strips, std::size_t panels, std::size_t index, int columns) {
  for (const Strip& strip : strips) {
    if (strip.panels.size() != panels || !strip.panels[index].heat_map) continue;
    const int cells = static_cast<int>(strip.panels[index].heat_map->columns.size());
    if (cells <= columns) return columns / cells * cells;
  }
  return columns;
}

std::string text_of(const std::vector<Strip>& strips, const Strip& strip, int columns, bool colour) {
  const std::vector<Margins> margins = shared_margins(strips, strip);
  const std::size_t count = strip.panels.size();
  const bool has_x =
      std::any_of(strips.begin(), strips.end(), [](const Strip& one) { return one.panels[0].x.shown; });
  int room = columns - 2 * static_cast<int>(count - 1);
  double shares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    shares += strip.panels[i].width;
    // The labels of an x axis extend beyond its end.
    room -= margins[i].left + std::max(margins[i].right, has_x && i + 1 == count ? 2 : 0);
  }
  std::vector<int> widths;
  int rows = strip.rows;
  for (std::size_t i = 0; i < count; ++i) {
    const int width = std::max(static_cast<int>(room * strip.panels[i].width / shares), 4);
    widths.push_back(whole_cells(strips, count, i, width));
    // A character is twice as tall as wide.
    if (strip.panels[i].equal_units && strip.panels[i].heat_map) {
      rows = std::max(std::min(rows, widths.back() / 2), 4);
      widths.back() = rows * 2;
    }
  }
  Canvas canvas(columns, margins.front().top + rows + margins.front().bottom);
  int left = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Area area = {left + margins[i].left, margins.front().top, widths[i], rows};
    paint_panel(canvas, strip.panels[i], area, colour);
    left = area.right() + margins[i].right + 2;
  }
  std::string text;
  for (int row = 0; row < canvas.rows(); ++row) text += canvas.row_text(row, colour) + "\n";
  return text;
}

// The rows of a figure, each split into as many strips as it needs.
std::vector<Strip> strips_of(const Figure& figure, int columns) {
  double shares = 0;
  for (const PanelRow& row : figure.rows) shares += row.height;
  std::vector<Strip> strips;
  for (const PanelRow& row : figure.rows) {
    int rows = std::clamp(static_cast<int>(std::lround(kPlotRows * row.height / shares)), 3, kMostRows);
    const auto& map = row.panels.front().heat_map;
    if (map && map->rows.size() > 4 && map->rows.size() < kMostRows) rows = static_cast<int>(map->rows.size());
    const std::size_t most = static_cast<std::size_t>(std::max(columns / kFewestColumns, 1));
    const std::size_t parts = (row.panels.size() + most - 1) / most;
    const std::size_t beside = (row.panels.size() + parts - 1) / parts;
    for (std::size_t first = 0; first < row.panels.size(); first += beside) {
      const auto begin = row.panels.begin() + static_cast<std::ptrdiff_t>(first);
      const auto count = static_cast<std::ptrdiff_t>(std::min(beside, row.panels.size() - first));
      strips.push_back({{begin, begin + count}, rows});
    }
  }
  return strips;
}

}  // namespace

int terminal_points(int columns) { return std::max(columns - 20, 20) * 2; }
int terminal_cells_down(bool colour) { return colour ? 2 * kMostRows : kMostRows; }

std::string terminal_text(const Figure& figure, int columns, bool colour) {
  std::string text;
  for (const std::string& line : wrap(figure.title, columns)) text += bold(line, colour) + "\n";
  const auto say = [&](const std::string& words) {
    if (words.empty()) return;
    for (const std::string& line : wrap(words, columns)) text += dim(line, colour) + "\n";
  };
  say(figure.subtitle);
  const std::vector<Strip> strips = strips_of(figure, columns);
  for (const Strip& strip : strips) {
    // Low strips (lanes) follow without a blank line.
    if (!text.empty() && (strip.rows > 4 || &strip == &strips.front())) text += "\n";
    text += text_of(strips, strip, columns, colour);
  }
  if (!figure.note.empty()) text += "\n";
  say(figure.note);
  return text;
}

}  // namespace posenc::cli
