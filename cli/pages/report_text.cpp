#include <fmt/format.h>

#include <algorithm>

#include "cli/pages/report.h"
#include "cli/system/terminal.h"

namespace posenc::cli {
namespace {

constexpr int kReportIndent = 2, kReportGap = 2;

std::string table_text(const ReportTable& table, bool colour) {
  std::vector<int> widths;
  for (const std::string& label : table.header) widths.push_back(columns_of(label));
  for (const std::vector<std::string>& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text = fmt::format("{:{}}{}", "", kReportIndent, pad_right(cells.front(), widths.front()));
    for (std::size_t i = 1; i < cells.size(); ++i) {
      text += fmt::format("{:{}}{}", "", kReportGap, pad_left(cells[i], widths[i]));
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::string text = dim(line(table.header), colour) + "\n";
  for (const std::vector<std::string>& row : table.rows) text += line(row) + "\n";
  return text;
}

std::string report_paragraph(std::string_view words, int columns) {
  return words.empty() ? "" : fmt::format("{}\n", fmt::join(wrap(words, columns), "\n"));
}

}  // namespace

std::string report_text(const Report& report, int columns, bool colour) {
  std::string text;
  int number = 0;
  for (const ReportSection& section : report.sections) {
    if (section.only_on_page) continue;
    if (number > 0) text += "\n";
    text += bold(fmt::format("{}. {}", ++number, section.heading), colour) + "\n" +
            report_paragraph(section.text, columns);
    if (!section.table.rows.empty()) text += table_text(section.table, colour);
    text += report_paragraph(section.closing, columns);
    int width = 0;
    for (const auto& [command, meaning] : section.commands) width = std::max(width, columns_of(command));
    for (const auto& [command, meaning] : section.commands) {
      text += fmt::format("{:{}}{}{:{}}{}\n", "", kReportIndent, pad_right(command, width), "", kReportGap, meaning);
    }
  }
  return text;
}

}  // namespace posenc::cli
