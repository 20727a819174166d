#include <utility>

#include "posenc/figures.h"

namespace posenc::figures {
namespace {

Json numbers(const std::vector<double>& values) {
  return Json::Array(values.begin(), values.end());  // NaN becomes null
}

Json axis_json(const Axis& axis) {
  return Json::Object{{"label", axis.label},
                      {"least", axis.least},
                      {"most", axis.most},
                      {"scale", axis.scale == AxisScale::kLog ? "log" : "linear"}};
}

Json heat_map_json(const HeatMap& map) {
  Json::Array rows;
  const auto width = static_cast<std::ptrdiff_t>(map.columns.size());
  for (auto row = map.values.begin(); row != map.values.end(); row += width) {
    rows.emplace_back(Json::Array(row, row + width));
  }
  return Json::Object{{"label", map.label},        {"least", map.least},
                      {"most", map.most},          {"columns", numbers(map.columns)},
                      {"rows", numbers(map.rows)}, {"values", std::move(rows)}};
}

Json panel_json(const Panel& panel) {
  Json::Object json = {{"title", panel.title}, {"x", axis_json(panel.x)}, {"y", axis_json(panel.y)}};
  if (panel.heat_map) json.emplace_back("heat_map", heat_map_json(*panel.heat_map));
  Json::Array series, envelopes, bands, rules;
  for (const Series& one : panel.series) {
    series.emplace_back(Json::Object{{"name", one.name}, {"x", numbers(one.x)}, {"y", numbers(one.y)}});
  }
  for (const Envelope& one : panel.envelopes) {
    envelopes.emplace_back(Json::Object{
        {"name", one.name}, {"x", numbers(one.x)}, {"low", numbers(one.low)}, {"high", numbers(one.high)}});
  }
  for (const Band& one : panel.bands) {
    bands.emplace_back(Json::Object{{"from", one.from}, {"to", one.to}, {"text", one.text}});
  }
  for (const Rule& one : panel.rules) {
    rules.emplace_back(Json::Object{{"axis", one.vertical ? "x" : "y"}, {"at", one.at}, {"text", one.text}});
  }
  json.emplace_back("series", std::move(series));
  json.emplace_back("envelopes", std::move(envelopes));
  json.emplace_back("bands", std::move(bands));
  json.emplace_back("rules", std::move(rules));
  return json;
}

}  // namespace

Json to_json(const Figure& figure) {
  Json::Array panels;
  for (const PanelRow& row : figure.rows) {
    for (const Panel& panel : row.panels) panels.push_back(panel_json(panel));
  }
  return Json::Object{{"kind", figure.kind},
                      {"title", figure.title},
                      {"subtitle", figure.subtitle},
                      {"note", figure.note},
                      {"panels", std::move(panels)}};
}

}  // namespace posenc::figures
