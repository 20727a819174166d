#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/backend.h"
#include "posenc/report_json.h"
#include "posenc/scheme.h"
#include "posenc/schemes/choice.h"

namespace posenc {
namespace {

// The type of a field in JSON's terms, or its choices if it has any.
template <class T> struct FieldType {
  static constexpr std::string_view kName = std::is_same_v<T, bool>       ? "boolean"
                                            : std::is_integral_v<T>       ? "integer"
                                            : std::is_floating_point_v<T> ? "number"
                                            : Choice<T>                   ? "choice"
                                                                          : "scaling";
};
template <class T> struct FieldType<std::optional<T>> {
  static constexpr std::string_view kName = "optional number";
};
template <> struct FieldType<std::vector<std::int64_t>> { static constexpr std::string_view kName = "integers"; };
template <> struct FieldType<std::vector<double>> { static constexpr std::string_view kName = "numbers"; };

// JSON knows how to write every kind of field; `defaults` is what it writes of a default value.
template <class S> Json::Array fields_json(const Json& defaults) {
  Json::Array list;
  S::fields([&]<class T>(std::string_view name, T S::*, std::string_view help) {
    Json::Object field{{"name", name}, {"type", FieldType<T>::kName}, {"default", *defaults.find(name)}};
    if constexpr (Choice<T>) {
      Json::Array choices;
      for (const std::string_view choice : ChoiceNames<T>::value) choices.emplace_back(choice);
      field.emplace_back("choices", std::move(choices));
    }
    field.emplace_back("help", help);
    list.emplace_back(std::move(field));
  });
  return list;
}

template <class S> Json scheme_entry() {
  const TrainedTable table = trained_table_of(S{});
  Json::Array axes;
  for (const TrainedTable::Axis& axis : table.axes) axes.emplace_back(axis.name);
  return Json::Object{{"name", S::name},
                      {"family", S::family},
                      {"formula", S::formula},
                      {"used_by", S::used_by},
                      {"trained_table", axes.empty() ? Json(nullptr) : Json(std::move(axes))},
                      {"fields", fields_json<S>(json_of(S{}))}};
}

template <class S> Json scaling_entry() {
  const Json rope = json_of(Rope{.scaling = S{}});
  return Json::Object{{"name", S::name}, {"formula", S::formula}, {"fields", fields_json<S>(*rope.find("scaling"))}};
}

template <class... S> Json::Array scheme_entries(const std::variant<S...>*) { return {scheme_entry<S>()...}; }
template <class... S> Json::Array scaling_entries(const std::variant<S...>*) { return {scaling_entry<S>()...}; }

}  // namespace

Json schemes_json() {
  return Json::Object{{"schemes", scheme_entries(static_cast<const Scheme*>(nullptr))},
                      {"scalings", scaling_entries(static_cast<const RopeScaling*>(nullptr))}};
}

Json backends_json() {
  Json::Array list;
  for (const std::string_view name : {"cpu", "reference", "cuda"}) {
    const std::string reason = why_absent(name);
    list.push_back(Json::Object{{"backend", name}, {"can_run", reason.empty()}, {"why_absent", reason}});
  }
  return list;
}

}  // namespace posenc
