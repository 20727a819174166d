#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <variant>

#include "cli/pages/html.h"
#include "cli/pages/report.h"
#include "posenc/version.h"

namespace posenc::cli {
namespace {

// Follows the reader's light or dark; on paper always dark on light, and no table is torn apart.
constexpr std::string_view kReportStyle = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --faint: #5b6470; --line: #d5dae1; --mark: #f3f5f8;
  --warn: #8a4b00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --paper: #15181c; --faint: #9aa4b1; --line: #363c45;
  --mark: #1f242b; --warn: #ffb454; } }
body { margin: 0 auto; max-width: 54rem; padding: 2rem 1.25rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .3rem; }
h2 { font-size: 1.25rem; margin-top: 2.4rem; border-top: 1px solid var(--line); padding-top: 1.2rem; }
p.summary, footer, caption, figcaption { color: var(--faint); }
div.wide { overflow-x: auto; }
div.details { display: flex; flex-wrap: wrap; gap: 0 1.2rem; }
div.details > div.wide { min-width: min(100%, 24rem); }
div.details > p, div.details > dl { flex-basis: 100%; margin: .4rem 0; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; font-size: .92rem; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { padding: .18rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th { font-weight: 600; }
tbody th, thead th:first-child { text-align: left; }
table.key { background: var(--mark); }
p.formula, code { font-family: ui-monospace, monospace; font-size: .9rem; }
p.note { border-left: 3px solid var(--warn); padding-left: .8rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1.2rem; }
dd { margin: 0; font-variant-numeric: tabular-nums; }
figure { margin: 1.2rem 0; }
figure img { max-width: 100%; background: #ffffff; border-radius: 4px; }
@media print { :root { --ink: #000; --paper: #fff; --faint: #333; --line: #999; --mark: #fff; --warn: #000; }
  @page { margin: 18mm; } body { max-width: none; padding: 0; font-size: 10pt; } h2 { break-after: avoid; }
  table, figure, p.note { break-inside: avoid; } div.wide { overflow: visible; }
  div.details > div.wide { min-width: 18rem; } }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; } th, td { padding: .15rem .4rem; } }
)";

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
  for (const std::string& cell : cells) text += fmt::format("<th scope=\"col\">{}</th>", escaped_html(cell));
  return text + "</tr></thead>\n";
}

std::string body_row(std::string_view label, const std::vector<std::string>& cells) {
  std::string text = fmt::format("<tr><th scope=\"row\">{}</th>", escaped_html(label));
  for (const std::string& cell : cells) text += fmt::format("<td>{}</td>", escaped_html(cell));
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
  return fmt::format("<p class=\"note\"><strong>Note:</strong> {}</p>\n", escaped_html(note.text));
}

std::string html_of(const StoryFacts& facts) {
  std::string text = "<dl>";
  for (const StoryFact& fact : facts.facts) {
    text += fmt::format("<dt>{}</dt><dd>{}</dd>", escaped_html(fact.name), escaped_html(shown_fact(fact)));
  }
  return text + "</dl>\n";
}

std::string html_of(const StoryFormula& formula) {
  return fmt::format("<p class=\"formula\">{}</p>\n", escaped_html(formula.text));
}

std::string html_of(const ReportTable& table) {
  if (table.rows.empty()) return "";
  std::string text = fmt::format("<div class=\"wide\"><table class=\"key\">{}<tbody>\n", head_row(table.header));
  for (const std::vector<std::string>& row : table.rows) {
    text += body_row(row.front(), {row.begin() + 1, row.end()});
  }
  return text + "</tbody></table></div>\n";
}

// As an image, so that names and styles within one picture cannot meet those of another.
std::string html_of(const ReportFigure& figure) {
  return fmt::format(
      "<figure><img alt=\"{0}\" src=\"data:image/svg+xml;base64,{1}\"><figcaption>{0}</figcaption></figure>\n",
      escaped_html(figure.caption), base64(figure.svg));
}

std::string html_of(const ReportSection& section, int number) {
  std::string text = fmt::format("<section>\n<h2>{}. {}</h2>\n", number, escaped_html(section.heading));
  if (!section.text.empty()) text += fmt::format("<p>{}</p>\n", escaped_html(section.text));
  text += html_of(section.page_table.rows.empty() ? section.table : section.page_table);
  if (!section.closing.empty()) text += fmt::format("<p>{}</p>\n", escaped_html(section.closing));
  if (!section.details.empty()) text += "<div class=\"details\">\n";
  for (const StoryBlock& block : section.details) {
    text += std::visit([](const auto& held) { return html_of(held); }, block);
  }
  if (!section.details.empty()) text += "</div>\n";
  for (const ReportFigure& figure : section.figures) text += html_of(figure);
  if (!section.commands.empty()) text += "<dl>";
  for (const auto& [command, meaning] : section.commands) {
    text += fmt::format("<dt><code>{}</code></dt><dd>{}</dd>", escaped_html(command), escaped_html(meaning));
  }
  return text + (section.commands.empty() ? "" : "</dl>\n") + "</section>\n";
}

}  // namespace

std::string report_html(const Report& report) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{}\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "img-src data:\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<h1>{}</h1>\n"
      "<p class=\"summary\">{}</p>\n",
      kReportMark, escaped_html(report.title), kReportStyle, escaped_html(report.title),
      escaped_html(report.summary));
  int number = 0;
  for (const ReportSection& section : report.sections) text += html_of(section, ++number);
  return text + fmt::format("<footer>Written by posenc {}.</footer>\n</body>\n</html>\n", POSENC_VERSION);
}

}  // namespace posenc::cli
