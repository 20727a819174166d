#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/story.h"

namespace posenc::cli {

/// A table of formatted text. The first column and the header are labels.
struct ReportTable {
  std::vector<std::string> header;  // one per column; the first is above the labels
  std::vector<std::vector<std::string>> rows;
  bool has_marks = false;  // narrow columns with vertical headings, for tables with many columns
};

/// A picture as two SVG documents, for a wide page and for a phone, with text of the same size.
struct ReportFigure {
  std::string svg, narrow_svg;
  std::string caption;  // what it shows
  std::string command;  // the command that draws it
};

/// A part of a report. On a terminal it is heading, text, table and closing. A page has longer prose, the figures,
/// and the computations, collapsed.
struct ReportSection {
  std::string heading, text;
  ReportTable table = {};
  std::string closing = {};
  std::vector<std::string> prose = {};                           // paragraphs of the page, in place of the text
  ReportTable page_table = {};                                   // on the page, in place of the table
  std::vector<std::pair<std::string, std::string>> legend = {};  // of that table: heading, meaning
  std::vector<ReportFigure> figures = {};
  std::vector<StoryStep> steps = {};  // collapsed: each with its own text next to its tables
  std::string steps_command = {};     // the command that shows them, for paper
  std::vector<std::pair<std::string, std::string>> commands = {};  // what to type, and what it does
  bool only_on_page = false;
};

struct Report {
  std::string title, summary;
  std::vector<ReportSection> sections;
};

std::string report_text(const Report& report, int columns, bool colour);

/// Written into every page, so that a later run recognises it.
inline constexpr std::string_view kReportMark = "<meta name=\"generator\" content=\"posenc tour\">";
/// One self-contained file, for wide screens, phones, dark mode and paper.
std::string report_html(const Report& report);

}  // namespace posenc::cli
