#include "cli/verbs/list_scalings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/system/terminal.h"
#include "posenc/json.h"
#include "posenc/scheme.h"

namespace posenc::cli {
namespace {

struct Field {
  std::string_view name, help;
  Json default_value;
};

struct ScalingCard {
  std::string_view name, formula;
  bool needs_length = false;
  std::vector<Field> fields;
};

// JSON can represent every kind of field, and writes them in the order of fields().
template <class S> ScalingCard scaling_card_of() {
  ScalingCard card{S::name, S::formula, false, {}};
  if constexpr (requires { S::needs_length; }) card.needs_length = true;
  const Json rope = json_of(Rope{.scaling = S{}});
  const Json& scaling = *rope.find("scaling");
  S::fields([&](std::string_view name, auto, std::string_view help) {
    card.fields.push_back({name, help, *scaling.find(name)});
  });
  return card;
}

template <class... S> std::vector<ScalingCard> scaling_cards_of(const std::variant<S...>*) {
  return {scaling_card_of<S>()...};
}
std::vector<ScalingCard> all_scaling_cards() { return scaling_cards_of(static_cast<const RopeScaling*>(nullptr)); }

std::string default_text(const Json& value) {
  const auto* const list = value.as<Json::Array>();
  if (value.as<std::nullptr_t>() != nullptr || (list != nullptr && list->empty())) return "-";
  if (const auto* const number = value.as<double>()) return fmt::format("{}", *number);
  return dump_json(value);
}

}  // namespace

std::string scalings_as_text() {
  const bool colour = wants_colour(STDOUT_FILENO);
  int name_columns = 0, field_columns = 0, default_columns = 0;
  for (const ScalingCard& card : all_scaling_cards()) {
    name_columns = std::max(name_columns, columns_of(card.name));
    for (const Field& field : card.fields) {
      field_columns = std::max(field_columns, columns_of(field.name));
      default_columns = std::max(default_columns, columns_of(default_text(field.default_value)));
    }
  }
  std::string text;
  for (const ScalingCard& card : all_scaling_cards()) {
    std::string name(card.name);
    for (const std::string& line : wrap(card.formula, std::min(output_columns(), 100) - name_columns - 2)) {
      text += fmt::format("{}  {}\n", bold(pad_right(std::exchange(name, ""), name_columns), colour), line);
    }
    const std::string indent = pad_right("", name_columns);
    for (const Field& field : card.fields) {
      std::string before = fmt::format("{}  {}  ", pad_right(field.name, field_columns),
                                       pad_right(default_text(field.default_value), default_columns));
      const int room = std::min(output_columns(), 100) - name_columns - 2 - columns_of(before);
      for (const std::string& line : wrap(field.help, room)) {
        text += fmt::format("{}  {}\n", indent, dim(before + line, colour));
        before = pad_right("", columns_of(before));
      }
    }
    if (card.needs_length) text += fmt::format("{}  {}\n", indent, dim("needs --length", colour));
  }
  text += "\nw_i = base^(-2i/d) for pair i of d dims; after each field its default. For example:\n";
  text += "  posenc table rope --positions 0:8 --scaling yarn:factor=4,original_length=32768\n";
  text += "  posenc table rope --positions 0:8 --scaling '{\"type\":\"llama3\",\"factor\":8}'\n";
  return text;
}

std::string scalings_as_json() {
  Json::Array list;
  for (const ScalingCard& card : all_scaling_cards()) {
    Json::Array fields;
    for (const Field& field : card.fields) {
      fields.push_back(Json::Object{{"field", field.name}, {"default", field.default_value}, {"help", field.help}});
    }
    list.push_back(Json::Object{{"scaling", card.name},
                                {"formula", card.formula},
                                {"needs_length", card.needs_length},
                                {"fields", std::move(fields)}});
  }
  return dump_json(Json(std::move(list)), 2) + "\n";
}

}  // namespace posenc::cli
