#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posenc/story.h"

namespace posenc::cli {

/// A table of ready texts: the first column and the header are labels.
struct ReportTable {
  std::vector<std::string> header;  // one for each column; the first is over the labels
  std::vector<std::vector<std::string>> rows;
};

/// A picture, as an SVG document of its own.
struct ReportFigure {
  std::string svg, caption;
};

/// A part of a report. On a terminal it is heading, text, table and closing; a page adds the details and the figures.
struct ReportSection {
  std::string heading, text;
  ReportTable table = {};
  ReportTable page_table = {};  // on a page, in place of the other: there is room for more
  std::string closing = {};
  std::vector<StoryBlock> details = {};
  std::vector<ReportFigure> figures = {};
  std::vector<std::pair<std::string, std::string>> commands = {};  // what to type, and what it does
};

struct Report {
  std::string title, summary;
  std::vector<ReportSection> sections;
};

std::string report_text(const Report& report, int columns, bool colour);

/// Written into every page, so that a later run knows it for its own.
inline constexpr std::string_view kReportMark = "<meta name=\"generator\" content=\"posenc tour\">";
/// One file that needs no other, reads well in light and dark, and on paper.
std::string report_html(const Report& report);

}  // namespace posenc::cli
