#include "posenc/report_json.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#include "posenc/scheme.h"
#include "posenc/schemes/choice.h"

namespace posenc {
namespace {

Json convention_json(const Convention& convention) {
  Json::Object object{{"scheme", name_of(convention.scheme)}};
  if (const auto* const rope = std::get_if<Rope>(&convention.scheme)) {
    object.emplace_back("layout", choice_name(rope->layout));
    object.emplace_back("sign", rope->sign);
    object.emplace_back("dims", rope->dims);
    object.emplace_back("first_dim", rope->first_dim);
    object.emplace_back("base", rope->base);
    if (!rope->sections.empty()) {
      object.emplace_back("sections", Json::Array(rope->sections.begin(), rope->sections.end()));
      object.emplace_back("section_order", choice_name(rope->section_order));
    }
    object.emplace_back("scaling", *json_of(*rope).find("scaling"));
  } else if (const auto* const waves = std::get_if<Sinusoidal>(&convention.scheme)) {
    object.emplace_back("layout", choice_name(waves->layout));
    object.emplace_back("spacing", choice_name(waves->spacing));
    object.emplace_back("dims", waves->width);
    object.emplace_back("base", waves->base);
  }
  if (const auto* const alibi = std::get_if<Alibi>(&convention.scheme)) {
    object.emplace_back("heads", alibi->heads);
    object.emplace_back("max_bias", alibi->max_bias);
  } else if (const auto* const t5 = std::get_if<T5>(&convention.scheme)) {
    object.emplace_back("heads", t5->heads);
    object.emplace_back("buckets", t5->buckets);
    object.emplace_back("max_distance", t5->max_distance);
    object.emplace_back("bidirectional", t5->bidirectional);
  }
  object.emplace_back("magnitude", convention.magnitude);
  object.emplace_back("first_position", convention.first_position);
  object.emplace_back("numerics", name_of(convention.numerics));
  object.emplace_back("numerics_sure", convention.is_numerics_sure);
  object.emplace_back("swapped", convention.is_swapped);
  object.emplace_back("residual", convention.residual);
  object.emplace_back("reversed", convention.is_reversed);
  object.emplace_back("along_heads", convention.is_along_heads);
  object.emplace_back("position_factor", convention.position_factor);
  object.emplace_back("input_factor", convention.input_factor);
  object.emplace_back("positions", Json::Array(convention.positions.begin(), convention.positions.end()));
  return object;
}

Json::Array texts_json(const std::vector<std::string>& texts) {
  Json::Array list;
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

// In four digits: the last bits of a measure are not the same on every machine.
double in_four_digits(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

Json::Array alternatives_json(const std::vector<Alternative>& alternatives) {
  Json::Array list;
  for (const Alternative& one : alternatives) {
    list.emplace_back(Json::Object{
        {"what", one.name}, {"difference", in_four_digits(one.difference)}, {"is_rounding", one.is_rounding}});
  }
  return list;
}

Json::Array deciding_json(const std::vector<DecidingTokens>& deciding) {
  Json::Array list;
  for (const DecidingTokens& one : deciding) {
    Json::Array firsts(one.first_positions.begin(), one.first_positions.end());
    list.emplace_back(Json::Object{{"tokens", one.tokens}, {"first_positions", std::move(firsts)}});
  }
  return list;
}

}  // namespace

Json json_of(const Diagnosis& diagnosis) {
  Json::Array others;
  for (const Convention& other : diagnosis.others) others.push_back(convention_json(other));
  return Json::Object{{"verdict", name_of(diagnosis.verdict)},
                      {"best", diagnosis.best ? convention_json(*diagnosis.best) : Json(nullptr)},
                      {"others", std::move(others)},
                      {"remarks", texts_json(diagnosis.remarks)}};
}

Json json_of(const CheckResult& result) {
  Json first(nullptr);
  if (result.first) {
    first = Json::Object{{"index", Json::Array(result.first->index.begin(), result.first->index.end())},
                         {"expected", result.first->expected},
                         {"got", result.first->got}};
  }
  const bool agrees = result.agreement != Agreement::kDiffers && result.agreement != Agreement::kInconclusive;
  return Json::Object{{"agrees", agrees},
                      {"max_abs_error", result.largest_difference},
                      {"first_difference", std::move(first)},
                      {"diagnosis", result.first ? json_of(result.diagnosis) : Json(nullptr)},
                      {"numerics", name_of(result.numerics)},
                      {"advice", texts_json(result.advice)},
                      {"verdict", name_of(result.agreement)},
                      {"tolerance", result.tolerance},
                      {"masked", result.masked},
                      {"where", result.where},
                      {"heads", Json::Array(result.heads.begin(), result.heads.end())},
                      {"tokens", Json::Array(result.tokens.begin(), result.tokens.end())},
                      {"reason", result.reason},
                      {"excluded", alternatives_json(result.excluded)},
                      {"unseen", alternatives_json(result.unseen)},
                      {"deciding", deciding_json(result.deciding)},
                      {"float32_decides", result.is_float32_enough},
                      {"values", result.values_type ? Json(name_of(*result.values_type)) : Json(nullptr)}};
}

}  // namespace posenc
