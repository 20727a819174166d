#include "cli/plots/gnuplot_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/plots/end_labels.h"
#include "cli/plots/gnuplot_page.h"
#include "cli/plots/ticks.h"
#include "cli/system/terminal.h"

namespace posenc::cli {
namespace {

constexpr double kGap = 16;

double below(const PanelRow& row, double page_width) {
  double most = 0;
  for (const Panel& panel : row.panels) {
    most = std::max(most, below_axis(panel) + names_below(panel, page_width).height());
  }
  return most;
}

double left_margin(const Panel& panel, double height) {
  return widest(ticks_of(panel.y, upright_ticks(height))) + (panel.y.shown ? 10 : 0) +
         (panel.y.label.empty() ? 0 : 22);
}

double right_margin(const Panel& panel, double page_width) {
  if (names_below(panel, page_width).rows > 0) return 6;
  double names = 0;
  for (const std::string& name : end_names(panel)) names = std::max(names, text_width(name));
  if (names > 0) return names + (has_one_name(panel) ? 16 : kSample + 20);
  if (!panel.heat_map || !panel.heat_map->shows_scale) return 6;
  const Axis scale{.least = panel.heat_map->least, .most = panel.heat_map->most};
  return 12 + kColourBar + 8 + widest(ticks_of(scale, 4)) + (panel.heat_map->label.empty() ? 0 : 20);
}

double above(const PanelRow& row) {
  const auto has_title = [](const Panel& panel) { return !panel.title.empty(); };
  return std::any_of(row.panels.begin(), row.panels.end(), has_title) ? 22 : 4;
}
double around_axis(const PanelRow& row, double page_width) { return above(row) + below(row, page_width); }

// The margins to the left and right of the data in each panel of a row. Rows with the same number of panels share
// them, so that their data line up.
struct RowMargins {
  std::vector<double> left, right;
};
RowMargins row_margins_of(const Figure& figure, const PanelRow& like, double share, double page_width) {
  RowMargins margins{std::vector<double>(like.panels.size()), std::vector<double>(like.panels.size())};
  for (const PanelRow& row : figure.rows) {
    if (row.panels.size() != like.panels.size()) continue;
    for (std::size_t i = 0; i < row.panels.size(); ++i) {
      margins.left[i] = std::max(margins.left[i], left_margin(row.panels[i], share * row.height));
      margins.right[i] = std::max(margins.right[i], right_margin(row.panels[i], page_width));
    }
  }
  return margins;
}

void draw_row(GnuplotPage& page, const PanelRow& row, const Box& box, const RowMargins& margins) {
  double shares = 0, room = box.width() - kGap * static_cast<double>(row.panels.size() - 1);
  for (std::size_t i = 0; i < row.panels.size(); ++i) {
    shares += row.panels[i].width;
    room -= margins.left[i] + margins.right[i];
  }
  double at = box.left;
  for (std::size_t i = 0; i < row.panels.size(); ++i) {
    const double width = std::max(room * row.panels[i].width / shares, 20.0);
    const double left = at + margins.left[i], top = box.top + above(row);
    page.draw_panel(row.panels[i],
                    {left, top, left + width, std::max(box.bottom - below(row, page.box().right), top + 10)});
    at = left + width + margins.right[i] + kGap;
  }
}

void draw_rows(GnuplotPage& page, const Figure& figure, const Box& box) {
  double shares = 0, extra = 0;
  for (const PanelRow& row : figure.rows) {
    shares += row.height;
    extra += around_axis(row, page.box().right);
  }
  const double room = box.height() - kGap * static_cast<double>(figure.rows.size() - 1) - extra;
  double top = box.top;
  for (const PanelRow& row : figure.rows) {
    const double height = room * row.height / shares + around_axis(row, page.box().right);
    draw_row(page, row, {box.left, top, box.right, top + height},
             row_margins_of(figure, row, room / shares, page.box().right));
    top += height + kGap;
  }
}

// Wraps text to the width.
std::vector<std::string> lines_of(const std::string& text, double width) {
  return text.empty() ? std::vector<std::string>{} : wrap(text, std::max(static_cast<int>(width), 10));
}

}  // namespace

std::string gnuplot_text(std::string_view text) {
  std::string quoted = "\"";
  bool after_number = false;  // an escape precedes: a digit would be read as part of its number
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    const bool is_digit = c >= '0' && c <= '9';
    const bool is_plain = code >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (is_digit && !after_number) || c == ' ' || c == '.' || c == ',';
    const bool is_control = code < 0x20 || code == 0x7f;
    after_number = !is_plain && !is_control;
    if (after_number) {
      quoted += fmt::format("\\{:03o}", static_cast<unsigned>(code));
    } else {
      quoted += is_control ? ' ' : c;
    }
  }
  return quoted + "\"";
}

std::string gnuplot_script(const Figure& figure, PictureFormat format, int width, int height, double scale) {
  GnuplotPage page(format, width, height, scale);
  const Box box = page.box();
  const double room = box.width() - 2 * kEdge;
  double top = kEdge - 4;
  for (const std::string& line : lines_of(figure.title, room / kCharacter * kSmallText / kTitleText)) {
    top += 26;
    page.label(line, kEdge, top - 11, "left", kTitleText, kInk);
  }
  for (const std::string& line : lines_of(figure.subtitle, room / kCharacter)) {
    top += kLineHeight;
    page.label(line, kEdge, top - 4, "left", kSmallText, kSoftInk);
  }
  double bottom = box.bottom - 12;
  std::vector<std::string> notes = lines_of(figure.note, room / kCharacter);
  std::reverse(notes.begin(), notes.end());
  for (const std::string& line : notes) {
    page.label(line, kEdge, bottom, "left", kSmallText, kSoftInk);
    bottom -= kLineHeight;
  }
  page.flush_labels();
  draw_rows(page, figure, {kEdge, top + 14, box.right - kEdge, bottom});
  return page.take();
}

}  // namespace posenc::cli
