#include "cli/plots/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/plots/gnuplot.h"
#include "cli/plots/gnuplot_page.h"
#include "cli/system/failure.h"

namespace posenc::cli {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string xml_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'') {
      safe += fmt::format("&#{};", static_cast<unsigned>(code));
    } else {
      safe += code < 0x20 || code == 0x7f ? ' ' : c;
    }
  }
  return safe;
}

// Corrects gnuplot's SVG: its title is gnuplot's name and version, browsers would blur the cells of a heat map, and
// the font may be missing.
std::string finished(std::string svg, const Figure& figure) {
  const std::size_t begin = svg.find("<title>"), end = svg.find("</desc>");
  if (begin != std::string::npos && end != std::string::npos && begin < end) {
    svg.replace(begin, end + 7 - begin,
                fmt::format("<title>{}</title>\n<desc>{}</desc>", xml_text(figure.title), xml_text(figure.subtitle)));
  }
  replace_all(svg, "preserveAspectRatio='none'",
              "preserveAspectRatio='none' style='image-rendering:optimizeSpeed;image-rendering:pixelated'");
  replace_all(svg, "font-family=\"DejaVu Sans\"", "font-family=\"DejaVu Sans, Verdana, Arial, sans-serif\"");
  replace_all(svg, "<svg \n", "<svg role=\"img\"\n");
  replace_all(svg, "]]>", "]]&gt;");  // the only sequence that gnuplot does not escape and XML forbids
  return svg;
}

bool is_whole(std::string_view bytes, PictureFormat format) {
  const std::string_view tail = bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 16));
  switch (format) {
    case PictureFormat::kPng:
      return bytes.starts_with("\x89PNG") && tail.find("IEND") != std::string_view::npos;
    case PictureFormat::kPdf:
      return bytes.starts_with("%PDF") && tail.find("%%EOF") != std::string_view::npos;
    case PictureFormat::kSvg:
    default:
      return bytes.find("<svg") != std::string_view::npos && tail.find("</svg>") != std::string_view::npos;
  }
}

}  // namespace

std::string picture_of(const Figure& figure, PictureFormat format, int width, int height) {
  std::string bytes = run_gnuplot(gnuplot_script(figure, format, width, height));
  if (!is_whole(bytes, format)) throw Failure{kFilesFailed, "gnuplot: ended before the picture did"};
  return format == PictureFormat::kSvg ? finished(std::move(bytes), figure) : bytes;
}

namespace {

// Makes the ids in the SVG unique within a page.
std::string for_a_page(std::string svg, const std::string& id) {
  svg.erase(0, svg.find("<svg"));
  for (const std::string_view quote : {"'", "\""}) {
    replace_all(svg, fmt::format(" id={}", quote), fmt::format(" id={}{}-", quote, id));
    replace_all(svg, fmt::format("xlink:href={}#", quote), fmt::format("xlink:href={}#{}-", quote, id));
  }
  replace_all(svg, "url(#", fmt::format("url(#{}-", id));
  return svg;
}

}  // namespace

std::string svg_of(const Figure& figure, const std::string& id) {
  return for_a_page(picture_of(figure, PictureFormat::kSvg, figure.width, figure.height), id);
}

std::string narrow_svg_of(const Figure& figure, const std::string& id) {
  constexpr int kNarrow = 370;
  Figure narrow = figure;
  // The page has its own title and caption.
  narrow.title.clear();
  narrow.subtitle.clear();
  narrow.note.clear();
  // Panels side by side are stacked instead.
  std::vector<PanelRow> rows;
  for (const PanelRow& row : figure.rows) {
    for (const Panel& panel : row.panels) rows.push_back({{panel}, row.height});
  }
  narrow.rows = std::move(rows);
  double names = 0;  // height of the names below their panels
  for (const PanelRow& row : narrow.rows) names += names_below(row.panels.front(), kNarrow).height();
  const int height = std::clamp(figure.height, 360, 620) + static_cast<int>(names);
  std::string svg = run_gnuplot(gnuplot_script(narrow, PictureFormat::kSvg, kNarrow, height, 1.0));
  if (!is_whole(svg, PictureFormat::kSvg)) throw Failure{kFilesFailed, "gnuplot: ended before the picture did"};
  return for_a_page(finished(std::move(svg), figure), id);
}

}  // namespace posenc::cli
