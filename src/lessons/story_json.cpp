#include <fmt/format.h>

#include "posenc/story.h"

namespace posenc {
namespace {

Json::Array list_of(const std::vector<std::string>& texts) {
  Json::Array list;
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

Json json_of(const Misprint& misprint) {
  return Json::Object{{"matrix", misprint.matrix}, {"row", misprint.row},         {"column", misprint.column},
                      {"value", misprint.value},   {"printed", misprint.printed}, {"rounding", misprint.is_rounding}};
}

Json json_of(const StoryMatrix& matrix) {
  Json::Array values;
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    Json::Array line;
    for (std::size_t column = 0; column < matrix.columns.size(); ++column) line.emplace_back(matrix.at(row, column));
    values.emplace_back(std::move(line));
  }
  return Json::Object{{"kind", "matrix"},
                      {"name", matrix.name},
                      {"caption", matrix.caption},
                      {"rows", list_of(matrix.rows)},
                      {"columns", list_of(matrix.columns)},
                      {"digits", matrix.digits},
                      {"values", std::move(values)}};
}

Json json_of(const StoryNote& note) {
  Json::Array misprints;
  for (const Misprint& misprint : note.misprints) misprints.push_back(json_of(misprint));
  return Json::Object{{"kind", "note"}, {"text", note.text}, {"misprints", std::move(misprints)}};
}

Json json_of(const StoryFacts& block) {
  Json::Array facts;
  for (const StoryFact& fact : block.facts) {
    Json value = std::visit([](const auto& held) { return Json(held); }, fact.value);
    facts.push_back(Json::Object{{"name", fact.name}, {"value", std::move(value)}, {"shown", shown_fact(fact)}});
  }
  return Json::Object{{"kind", "facts"}, {"facts", std::move(facts)}};
}

Json json_of(const StoryFormula& formula) { return Json::Object{{"kind", "formula"}, {"text", formula.text}}; }

Json json_of(const StoryErrata& errata) {
  Json::Array misprints;
  for (const Misprint& misprint : errata.misprints) misprints.push_back(json_of(misprint));
  return Json::Object{{"kind", "errata"}, {"text", errata.text}, {"misprints", std::move(misprints)}};
}

Json json_of(const CellFactor& factor) { return Json::Object{{"name", factor.name}, {"value", factor.value}}; }

}  // namespace

Json to_json(const Story& story) {
  Json::Array steps;
  for (const StoryStep& step : story.steps) {
    Json::Array blocks;
    for (const StoryBlock& block : step.blocks) {
      blocks.push_back(std::visit([](const auto& held) { return json_of(held); }, block));
    }
    steps.push_back(Json::Object{{"heading", step.heading}, {"text", step.text}, {"blocks", std::move(blocks)}});
  }
  return Json::Object{{"story", story.name},      {"title", story.title},   {"summary", story.summary},
                      {"source", story.source},   {"figure", story.figure}, {"python", story.python},
                      {"steps", std::move(steps)}};
}

Json to_json(const CellExpansion& cell) {
  const CellTerms& parts = cell.parts;
  Json::Array terms, divisor_terms;
  for (const std::vector<CellFactor>& term : parts.terms) {
    Json::Array factors;
    for (const CellFactor& factor : term) factors.push_back(json_of(factor));
    terms.emplace_back(std::move(factors));
  }
  for (const CellFactor& factor : parts.divisor_terms) divisor_terms.push_back(json_of(factor));
  return Json::Object{{"matrix", cell.matrix},
                      {"row", cell.row},
                      {"column", cell.column},
                      {"value", cell.value},
                      {"formula", parts.formula},
                      {"terms", std::move(terms)},
                      {"function", parts.function.empty() ? Json(nullptr) : Json(parts.function)},
                      {"divisor", parts.divisor ? json_of(*parts.divisor) : Json(nullptr)},
                      {"divisor_terms", std::move(divisor_terms)},
                      {"misprint", cell.misprint ? json_of(*cell.misprint) : Json(nullptr)}};
}

std::string shown_number(double value, int digits) {
  std::string text = fmt::format("{:.{}f}", value, digits);
  const bool is_zero = text.find_first_not_of("-0.") == std::string::npos;
  return is_zero && text.starts_with('-') ? text.substr(1) : text;
}

std::string shown_fact(const StoryFact& fact) {
  if (const auto* const text = std::get_if<std::string>(&fact.value)) return *text;
  if (const auto* const whole = std::get_if<std::int64_t>(&fact.value)) return std::to_string(*whole);
  if (const auto* const yes = std::get_if<bool>(&fact.value)) return *yes ? "yes" : "no";
  const double value = std::get<double>(fact.value);
  return fact.significant ? fmt::format("{:.{}g}", value, fact.digits) : shown_number(value, fact.digits);
}

}  // namespace posenc
