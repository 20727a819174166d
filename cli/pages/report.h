#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/story.h"

namespace posenc::cli {

/// A table of ready texts: the first column and the header are labels.
struct ReportTable {
  std::vector<std::string> header;  // one for each column; the first is over the labels
  std::vector<std::vector<std::string>> rows;
  bool has_marks = false;  // narrow columns with upright headings: a page shows many of them
};

/// A picture, as SVG documents of its own: one for a wide page and one for a phone, with text of the same size.
struct ReportFigure {
  std::string svg, narrow_svg;
  std::string caption;  // what to see in it
  std::string command;  // that draws it
};

/// A part of a report. On a terminal it is heading, text, table and closing. A page has longer prose, the figures, and
/// the computations folded.
struct ReportSection {
  std::string heading, text;
  ReportTable table = {};
  std::string closing = {};
  std::vector<std::string> prose = {};                           // paragraphs of the page, in place of the text
  ReportTable page_table = {};                                   // on the page, in place of the table
  std::vector<std::pair<std::string, std::string>> legend = {};  // of that table: heading, meaning
  std::vector<ReportFigure> figures = {};
  std::vector<StoryStep> steps = {};                               // folded: each with its own text beside its tables
  std::string steps_command = {};                                  // that shows them, for paper
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
/// One file that needs no other; for wide screens, phones, dark rooms and paper.
std::string report_html(const Report& report);

}  // namespace posenc::cli
