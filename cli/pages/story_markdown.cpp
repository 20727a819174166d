#include "cli/pages/story_markdown.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <variant>

namespace posenc::cli {
namespace {

// Escapes everything that Markdown could treat as markup.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\`*_{}[]<>#|").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string markdown_of(const StoryMatrix& matrix) {
  std::string text = fmt::format("**{}**\n\n|  |", escaped(matrix.caption));
  std::string rule = "\n|---|";
  for (const std::string& column : matrix.columns) {
    text += fmt::format(" {} |", escaped(column));
    rule += "---:|";
  }
  text += rule + "\n";
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    text += fmt::format("| {} |", escaped(matrix.rows[row]));
    for (std::size_t column = 0; column < matrix.columns.size(); ++column) {
      const double value = matrix.at(row, column);
      text += fmt::format(" {} |", std::isnan(value) ? "" : shown_number(value, matrix.digits));
    }
    text += "\n";
  }
  return text;
}

std::string markdown_of(const StoryNote& note) { return fmt::format("> **Note:** {}\n", escaped(note.text)); }

std::string markdown_of(const StoryFacts& facts) {
  std::string text;
  for (const StoryFact& fact : facts.facts) {
    text += fmt::format("- {}: {}\n", escaped(fact.name), escaped(shown_fact(fact)));
  }
  return text;
}

std::string markdown_of(const StoryFormula& formula) { return fmt::format("```text\n{}\n```\n", formula.text); }

std::string markdown_of(const StoryErrata& errata) {
  std::string text = "| number | correct | printed |\n|---|---:|---:|\n";
  for (const Misprint& misprint : errata.misprints) {
    text += fmt::format("| {} | {} | {} |\n", escaped(misprint_place(misprint)), correct_number(misprint),
                        escaped(misprint.printed));
  }
  return text;
}

std::string product_of(const std::vector<CellFactor>& term, int digits) {
  std::vector<std::string> factors;
  for (const CellFactor& factor : term) factors.push_back(shown_number(factor.value, digits));
  return fmt::format("{}", fmt::join(factors, " × "));
}

}  // namespace

std::string story_markdown(const Story& story) {
  std::string text = fmt::format("# {}\n\n{}\n", escaped(story.title), escaped(story.summary));
  if (!story.source.empty()) text += fmt::format("\nSource: {}\n", escaped(story.source));
  int number = 0;
  for (const StoryStep& step : story.steps) {
    text += fmt::format("\n## {}. {}\n\n{}\n", ++number, escaped(step.heading), escaped(step.text));
    for (const StoryBlock& block : step.blocks) {
      text += "\n" + std::visit([](const auto& held) { return markdown_of(held); }, block);
    }
  }
  if (!story.figure.empty()) text += fmt::format("\n## Figure\n\n```sh\nposenc {}\n```\n", story.figure);
  text += fmt::format("\n## In numpy\n\n```python\n{}```\n", story.python);
  return text;
}

std::string cell_markdown(const CellExpansion& cell) {
  const CellTerms& parts = cell.parts;
  std::string text = fmt::format("**{}[{}, {}] = {}**\n\n{}\n", escaped(cell.matrix), escaped(cell.row),
                                 escaped(cell.column), shown_number(cell.value, cell.digits), escaped(parts.formula));
  if (!parts.terms.empty()) text += "\n";
  for (const std::vector<CellFactor>& term : parts.terms) {
    std::string names;
    for (const CellFactor& factor : term) names += (names.empty() ? "" : " × ") + factor.name;
    text += fmt::format("- {}: {}\n", product_of(term, cell.digits), escaped(names));
  }
  if (!parts.function.empty()) text += fmt::format("- then {} of the sum\n", parts.function);
  for (const CellFactor& factor : parts.divisor_terms) {
    text += fmt::format("- in Σ, {}: {}\n", shown_number(factor.value, cell.digits), escaped(factor.name));
  }
  if (parts.divisor) {
    text += fmt::format("- divided by {}: {}\n", shown_number(parts.divisor->value, cell.digits),
                        escaped(parts.divisor->name));
  }
  if (cell.misprint) {
    text += fmt::format("\n> **Note:** the source text prints {} here.\n", cell.misprint->printed);
  }
  return text;
}

}  // namespace posenc::cli
