#include "posenc/report_json.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/scheme.h"

namespace posenc {

TrainedWaves trained_waves(const LayerGroup& group, std::optional<std::int64_t> trained_length) {
  TrainedWaves result;
  if (group.trained_length) trained_length = group.trained_length;
  if (!group.scheme) return result;
  const PrepareOptions options{.length = std::max<std::int64_t>(trained_length.value_or(1), 1)};
  if (const auto* const rope = std::get_if<Rope>(&*group.scheme)) {
    const Rotation form = prepare(*rope, options);
    result.magnitude = form.magnitude;
    result.softmax_factor = form.softmax_factor;
    for (const Frequency& frequency : form.frequencies) result.frequencies.push_back(radians_of(frequency));
  } else if (const auto* const waves = std::get_if<Sinusoidal>(&*group.scheme); waves != nullptr && !waves->turns) {
    const Addition form = prepare(*waves, options);
    for (const Wave& wave : std::get<Waves>(form.source).waves) {
      result.frequencies.push_back(radians_of(wave.frequency));
    }
  }
  return result;
}

namespace {

Json::Array text_list(const std::vector<std::string>& texts) {
  Json::Array list;
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

template <class T> Json or_null(const std::optional<T>& value) { return value ? Json(*value) : Json(nullptr); }
Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json::Array groups_json(const std::vector<LayerGroup>& groups, std::optional<std::int64_t> trained_length) {
  Json::Array list;
  for (const LayerGroup& group : groups) list.push_back(json_of(group, trained_length));
  return list;
}

}  // namespace

Json json_of(const LayerGroup& group, std::optional<std::int64_t> trained_length) {
  const TrainedWaves form = trained_waves(group, trained_length);
  Json scheme = Json::Object{{"scheme", group.scheme_name}, {"available", false}};
  if (group.scheme) {
    Json::Value value = json_of(*group.scheme).take();
    auto object = std::get<Json::Object>(std::move(value));
    if (std::holds_alternative<Rope>(*group.scheme)) object.emplace_back("magnitude", form.magnitude);
    scheme = std::move(object);
  }
  Json::Array frequencies(form.frequencies.begin(), form.frequencies.end());
  Json::Object object{{"layers", group.layers.empty() ? Json(nullptr) : Json(layer_ranges(group.layers))},
                      {"layer_type", or_null(group.layer_type)},
                      {"scheme", std::move(scheme)},
                      {"frequencies", std::move(frequencies)},
                      {"softmax_factor", form.softmax_factor},
                      {"unscaled", group.is_unscaled},
                      {"first_position", group.first_position}};
  if (!group.formula.empty()) object.emplace_back("formula", group.formula);
  object.emplace_back("causal", or_null(group.is_causal));
  object.emplace_back("window", or_null(group.window));
  object.emplace_back("chunk", or_null(group.chunk));
  object.emplace_back("scale", or_null(group.scale));
  object.emplace_back("softcap", group.softcap > 0 ? Json(group.softcap) : Json(nullptr));
  object.emplace_back("sinks", group.has_sinks);
  object.emplace_back("temperature", group.temperature
                                         ? Json(Json::Object{{"scale", group.temperature->scale},
                                                             {"length", group.temperature->length},
                                                             {"shift", group.temperature->shift},
                                                             {"rule", choice_name(group.temperature->rule)},
                                                             {"formula", to_string(*group.temperature)}})
                                         : Json(nullptr));
  object.emplace_back("other_attention", or_null(group.other_attention));
  object.emplace_back("token_mixer", or_null(group.token_mixer));
  if (group.trained_length) object.emplace_back("trained_length", *group.trained_length);
  return object;
}

Json json_of(const Model& model) {
  Json::Array parts;
  for (const ModelPart& part : model.parts) {
    parts.emplace_back(Json::Object{{"part", part.name},
                                    {"model_type", part.model_type},
                                    {"layers", groups_json(part.groups, part.trained_length)}});
  }
  return Json::Object{{"model_type", model.model_type},
                      {"layers", groups_json(model.groups, model.trained_length)},
                      {"parts", std::move(parts)},
                      {"trained_length", or_null(model.trained_length)},
                      {"usable_length", or_null(model.usable_length)},
                      {"warnings", text_list(model.warnings)},
                      {"is_assumed", model.is_assumed},
                      {"assumed", text_list(model.assumed)},
                      {"notes", text_list(model.notes)}};
}

Json json_of(const EngineComparison& comparison) {
  Json::Array topics;
  for (const EngineTopic& topic : comparison.topics) {
    Json::Array engines;
    for (const EngineAnswer& one : topic.engines) {
      const auto size = [&](double value, bool is_there) {
        return one.is_able && is_there ? Json(value) : Json(nullptr);
      };
      engines.emplace_back(Json::Object{{"engine", one.engine},
                                        {"able", one.is_able},
                                        {"what", one.what},
                                        {"angle", size(one.angle, topic.is_rotation)},
                                        {"wave", size(one.wave, topic.is_rotation)},
                                        {"score", size(one.score, true)},
                                        {"differs", one.differs},
                                        {"version", one.version},
                                        {"date", one.date},
                                        {"since", one.since.empty() ? Json(nullptr) : Json(one.since)},
                                        {"source", one.source}});
    }
    topics.emplace_back(Json::Object{{"topic", topic.name},
                                     {"layers", or_null(topic.layers)},
                                     {"layer_type", or_null(topic.layer_type)},
                                     {"differs", topic.is_compared() ? Json(topic.differs) : Json(nullptr)},
                                     {"sentence", topic.sentence},
                                     {"engines", std::move(engines)}});
  }
  return Json::Object{{"length", comparison.length},
                      {"compared", comparison.compared()},
                      {"agrees", comparison.compared() > 0 ? Json(comparison.agrees()) : Json(nullptr)},
                      {"topics", std::move(topics)}};
}

}  // namespace posenc
