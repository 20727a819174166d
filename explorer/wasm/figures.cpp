// Figures of the library, with their lists of numbers beside the JSON: a heat map has 262,144 of them.

#include "posenc/figures.h"

#include <cstring>

#include "explorer/wasm/call.h"
#include "posenc/error.h"

namespace posenc::page {
namespace {

std::optional<std::int64_t> optional_integer(const Json& fields, std::string_view name) {
  if (fields.find(name) == nullptr) return {};
  return integer(fields, name, 0);
}

figures::Request request_from(const Json& fields) {
  figures::Request request;
  if (const Json* schemes = fields.find("schemes")) {
    const auto* list = schemes->as<Json::Array>();
    if (list == nullptr) raise("schemes must be a list");
    for (const Json& one : *list) request.schemes.push_back({scheme_from(one), {}});
  }
  if (const Json* zoom = fields.find("zoom")) {
    request.zoom = figures::Range{integer(*zoom, "from", 0), integer(*zoom, "to", 0)};
  }
  request.at = optional_integer(fields, "at");
  request.shift = optional_integer(fields, "shift");
  request.key = optional_integer(fields, "key");
  request.head = optional_integer(fields, "head");
  request.trained = optional_integer(fields, "trained");
  request.length = integer(fields, "length", 0);
  request.factor = number(fields, "factor", 8);
  request.as_lines = flag(fields, "lines");
  request.log_x = flag(fields, "log_x");
  request.log_y = flag(fields, "log_y");
  request.has_bound = flag(fields, "bound");
  request.compares = flag(fields, "compare");
  request.is_sketch = flag(fields, "sketch");
  request.spec = text(fields, "spec");
  request.numerics = numerics_from(text(fields, "numerics", "exact"));
  request.type = data_type_from(text(fields, "dtype", "f64"));
  request.points = static_cast<int>(integer(fields, "points", request.points));
  request.cells_across = static_cast<int>(integer(fields, "cells_across", request.cells_across));
  request.cells_down = static_cast<int>(integer(fields, "cells_down", request.cells_down));
  if (const Json* features = fields.find("features")) {
    if (const auto* list = features->as<Json::Array>()) {
      for (const Json& one : *list) {
        if (const auto* index = one.as<std::int64_t>()) request.features.push_back(*index);
      }
    }
  }
  return request;
}

// A list of numbers as {"from", "count"}, in doubles; where it is short, as it is.
class NumberStore {
 public:
  explicit NumberStore(std::vector<std::byte>& bytes) : bytes_(bytes) {}
  Json keep(const std::vector<double>& values) {
    const std::size_t from = bytes_.size() / sizeof(double);
    bytes_.resize(bytes_.size() + values.size() * sizeof(double));
    if (!values.empty()) {
      std::memcpy(bytes_.data() + from * sizeof(double), values.data(), values.size() * sizeof(double));
    }
    return Json::Object{{"from", static_cast<std::int64_t>(from)},
                        {"count", static_cast<std::int64_t>(values.size())}};
  }

 private:
  std::vector<std::byte>& bytes_;
};

Json axis_json(const figures::Axis& axis) {
  Json::Array ticks;
  for (const figures::Tick& tick : axis.ticks) ticks.push_back(Json::Object{{"at", tick.at}, {"text", tick.text}});
  return Json::Object{{"label", axis.label},       {"least", axis.least},
                      {"most", axis.most},         {"log", axis.scale == figures::AxisScale::kLog},
                      {"reversed", axis.reversed}, {"shown", axis.shown},
                      {"ticks", std::move(ticks)}};
}

// In the order of Drawing.
constexpr std::string_view kDrawings[] = {"line", "dots", "line-and-dots", "steps", "bars"};

Json panel_json(const figures::Panel& panel, NumberStore& store) {
  Json::Array series, envelopes, bands, rules, words, frames;
  for (const auto& one : panel.series) {
    series.push_back(Json::Object{{"name", one.name},
                                  {"x", store.keep(one.x)},
                                  {"y", store.keep(one.y)},
                                  {"style", one.style},
                                  {"drawing", kDrawings[static_cast<std::size_t>(one.drawing)]}});
  }
  for (const auto& one : panel.envelopes) {
    envelopes.push_back(Json::Object{{"name", one.name},
                                     {"x", store.keep(one.x)},
                                     {"low", store.keep(one.low)},
                                     {"high", store.keep(one.high)},
                                     {"style", one.style}});
  }
  for (const auto& one : panel.bands) {
    bands.push_back(Json::Object{{"from", one.from}, {"to", one.to}, {"text", one.text}});
  }
  for (const auto& one : panel.rules) {
    rules.push_back(Json::Object{{"vertical", one.vertical}, {"at", one.at}, {"text", one.text}});
  }
  for (const auto& one : panel.words) words.push_back(Json::Object{{"x", one.x}, {"y", one.y}, {"text", one.text}});
  for (const auto& one : panel.frames) {
    frames.push_back(Json::Object{{"left", one.left}, {"right", one.right}, {"low", one.low}, {"high", one.high}});
  }
  Json heat = nullptr;
  if (panel.heat_map) {
    const figures::HeatMap& map = *panel.heat_map;
    heat = Json::Object{{"columns", store.keep(map.columns)},
                        {"rows", store.keep(map.rows)},
                        {"values", store.keep(map.values)},
                        {"least", map.least},
                        {"most", map.most},
                        {"label", map.label}};
  }
  return Json::Object{
      {"title", panel.title},        {"x", axis_json(panel.x)},     {"y", axis_json(panel.y)},
      {"heat", std::move(heat)},     {"series", std::move(series)}, {"envelopes", std::move(envelopes)},
      {"bands", std::move(bands)},   {"rules", std::move(rules)},   {"words", std::move(words)},
      {"frames", std::move(frames)}, {"equal", panel.equal_units},  {"width", panel.width}};
}

}  // namespace

Answer figure(const Question& question) {
  figures::Request request = request_from(question.fields);
  // A trained table of the first scheme is beside the question: {"rows", "columns", "dtype"}.
  if (const Json* table = question.fields.find("table")) {
    const DataType type = data_type_from(text(*table, "dtype", "f32"));
    const std::int64_t rows = integer(*table, "rows", 0), columns = integer(*table, "columns", 0);
    const auto count = std::ssize(question.bytes) / size_of(type);
    if (rows < 1 || columns < 1 || rows > count / columns || rows * columns != count) {
      raise("the table's bytes do not fit its rows and columns");
    }
    if (request.schemes.empty()) raise("a table needs a scheme");
    request.schemes.front().weights = {question.bytes.data(), type, {rows, columns}};
  }
  const figures::Figure made = figures::make(text(question.fields, "kind"), request);
  Answer answer;
  NumberStore store(answer.bytes);
  Json::Array rows;
  for (const figures::PanelRow& row : made.rows) {
    Json::Array panels;
    for (const figures::Panel& panel : row.panels) panels.push_back(panel_json(panel, store));
    rows.push_back(Json::Object{{"panels", std::move(panels)}, {"height", row.height}});
  }
  answer.json =
      Json::Object{{"kind", made.kind},   {"title", made.title},   {"subtitle", made.subtitle}, {"note", made.note},
                   {"width", made.width}, {"height", made.height}, {"rows", std::move(rows)}};
  return answer;
}

}  // namespace posenc::page
