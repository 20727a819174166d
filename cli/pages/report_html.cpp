#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <variant>

#include "cli/pages/html.h"
#include "cli/pages/report.h"
#include "posenc/content.h"
#include "posenc/version.h"

namespace posenc::cli {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8U | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += at + i > bytes.size() ? '=' : kLetters[group >> (18U - 6U * i) & 63U];
    }
  }
  return text;
}

std::string head_row(const std::vector<std::string>& cells) {
  std::string text = "<thead><tr>";
  // The span allows rotating a heading.
  for (const std::string& cell : cells)
    text += fmt::format("<th scope=\"col\"><span>{}</span></th>", escaped_html(cell));
  return text + "</tr></thead>\n";
}

std::string body_row(std::string_view label, const std::vector<std::string>& cells) {
  std::string text = fmt::format("<tr><th scope=\"row\">{}</th>", escaped_html(label));
  for (const std::string& cell : cells) {
    const std::string_view mark = cell.starts_with("✓")   ? " class=\"good\""
                                  : cell.starts_with("✗") ? " class=\"bad\""
                                                          : "";
    text += fmt::format("<td{}>{}</td>", mark, escaped_html(cell));
  }
  return text + "</tr>\n";
}

std::string html_of(const StoryMatrix& matrix) {
  std::vector<std::string> header = {""};
  header.insert(header.end(), matrix.columns.begin(), matrix.columns.end());
  std::string text = fmt::format("<div class=\"wide\"><table><caption>{}</caption>{}<tbody>\n",
                                 escaped_html(matrix.caption), head_row(header));
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    std::vector<std::string> cells;
    for (std::size_t column = 0; column < matrix.columns.size(); ++column) {
      const double value = matrix.at(row, column);
      cells.push_back(std::isnan(value) ? "" : shown_number(value, matrix.digits));
    }
    text += body_row(matrix.rows[row], cells);
  }
  return text + "</tbody></table></div>\n";
}

std::string html_of(const StoryNote& note) {
  return fmt::format("<p class=\"note\">{}</p>\n", escaped_html(note.text));
}

std::string html_of(const StoryFacts& facts) {
  std::string text = "<dl class=\"facts\">";
  for (const StoryFact& fact : facts.facts) {
    text += fmt::format("<dt>{}</dt><dd>{}</dd>", escaped_html(fact.name), escaped_html(shown_fact(fact)));
  }
  return text + "</dl>\n";
}

std::string html_of(const StoryFormula& formula) {
  return fmt::format("<p class=\"formula\">{}</p>\n", escaped_html(formula.text));
}

std::string html_of(const StoryErrata& errata) {
  std::string text =
      fmt::format("<div class=\"wide\"><table>{}<tbody>\n", head_row({"number", "correct", "printed"}));
  for (const Misprint& misprint : errata.misprints) {
    text += body_row(misprint_place(misprint), {correct_number(misprint), misprint.printed});
  }
  return text + "</tbody></table></div>\n";
}

std::string html_of(const ReportTable& table) {
  if (table.rows.empty()) return "";
  std::string text = fmt::format("<div class=\"wide\"><table class=\"key{}\">{}<tbody>\n",
                                 table.has_marks ? " marks" : "", head_row(table.header));
  for (const std::vector<std::string>& row : table.rows) {
    text += body_row(row.front(), {row.begin() + 1, row.end()});
  }
  return text + "</tbody></table></div>\n";
}

// Embedded as images, so that names and styles in one picture cannot clash with those in another.
std::string html_of(const ReportFigure& figure) {
  std::string narrow;
  if (!figure.narrow_svg.empty()) {
    narrow = fmt::format("<source media=\"(max-width: 40rem)\" srcset=\"data:image/svg+xml;base64,{}\">",
                         base64(figure.narrow_svg));
  }
  return fmt::format(
      "<figure><picture>{}<img alt=\"{}\" src=\"data:image/svg+xml;base64,{}\"></picture><figcaption>{} "
      "<code>{}</code></figcaption></figure>\n",
      narrow, escaped_html(figure.caption), base64(figure.svg), escaped_html(figure.caption),
      escaped_html(figure.command));
}

std::string html_of(const StoryStep& step) {
  std::string text = fmt::format("<details>\n<summary>{}</summary>\n<div class=\"step\"><p class=\"prose\">{}</p>\n",
                                 escaped_html(step.heading), escaped_html(step.text));
  text += "<div class=\"tables\">\n";
  for (const StoryBlock& block : step.blocks) {
    text += std::visit([](const auto& held) { return html_of(held); }, block);
  }
  return text + "</div></div>\n</details>\n";
}

std::string prose_of(const ReportSection& section) {
  std::string text = "<div class=\"prose\">\n";
  if (section.prose.empty() && !section.text.empty()) text += fmt::format("<p>{}</p>\n", escaped_html(section.text));
  for (const std::string& paragraph : section.prose) text += fmt::format("<p>{}</p>\n", escaped_html(paragraph));
  if (!section.closing.empty()) text += fmt::format("<p>{}</p>\n", escaped_html(section.closing));
  return text + "</div>\n";
}

std::string definitions(std::string_view kind, const std::vector<std::pair<std::string, std::string>>& list) {
  if (list.empty()) return "";
  std::string text = fmt::format("<dl class=\"{}\">", kind);
  for (const auto& [name, meaning] : list) {
    text += fmt::format("<dt>{}</dt><dd>{}</dd>", escaped_html(name), escaped_html(meaning));
  }
  return text + "</dl>\n";
}

std::string html_of(const ReportSection& section, int number) {
  std::string text = fmt::format("<section id=\"s{0}\">\n<h2>{0}. {1}</h2>\n", number, escaped_html(section.heading));
  const ReportTable& table = section.page_table.rows.empty() ? section.table : section.page_table;
  const bool is_beside = !table.rows.empty() && !table.has_marks;
  if (is_beside) text += "<div class=\"beside\">\n";
  text += prose_of(section);
  text += html_of(table);
  if (is_beside) text += "</div>\n";
  text += definitions("legend", section.legend);
  for (const ReportFigure& figure : section.figures) text += html_of(figure);
  for (const StoryStep& step : section.steps) text += html_of(step);
  if (!section.steps_command.empty()) {
    text += fmt::format("<p class=\"on-paper\">The computation: <code>{}</code></p>\n",
                        escaped_html(section.steps_command));
  }
  return text + definitions("commands", section.commands) + "</section>\n";
}

}  // namespace

std::string report_html(const Report& report) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{}\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "img-src data:\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n"
      "<p class=\"summary\">{}</p>\n",
      kReportMark, escaped_html(report.title), content("pages/report.css"), escaped_html(report.title),
      escaped_html(report.summary));
  text += "<nav><ol>\n";
  int number = 0;
  for (const ReportSection& section : report.sections) {
    text += fmt::format("<li><a href=\"#s{}\">{}</a></li>\n", ++number, escaped_html(section.heading));
  }
  text += "</ol></nav>\n</header>\n<main>\n";
  number = 0;
  for (const ReportSection& section : report.sections) text += html_of(section, ++number);
  return text + fmt::format("</main>\n<footer>Written by posenc {}.</footer>\n</body>\n</html>\n", POSENC_VERSION);
}

}  // namespace posenc::cli
