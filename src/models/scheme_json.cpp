#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "formats/excerpt.h"
#include "posenc/aliases.h"
#include "posenc/error.h"
#include "posenc/json.h"
#include "posenc/scheme.h"
#include "posenc/schemes/choice.h"

namespace posenc {
namespace {

/// Where a value belongs: "sinusoidal: width".
struct Place {
  std::string_view scheme;
  std::string_view field;
};

[[noreturn]] void refuse(const Place& place, std::string_view rule, const Json& json, std::string_view hint = "") {
  raise(
      fmt::format("{}: {} must be {} but is {}{}", place.scheme, place.field, rule, excerpt(dump_json(json)), hint));
}

/// " (did you mean 'width'?)", or nothing.
std::string suggestion(std::string_view name, const std::vector<std::string_view>& names) {
  const std::string_view near = nearest_name(name, names);
  return near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near);
}

/// How a field of type T is represented in JSON. A new type of field needs one more of these, and nothing else here.
template <class T> struct FieldJson;

template <> struct FieldJson<std::int64_t> {
  static Json write(std::int64_t value) { return value; }
  static std::int64_t read(const Json& json, const Place& place) {
    if (const auto* integer = json.as<std::int64_t>()) return *integer;
    refuse(place, "an integer", json);
  }
};

template <> struct FieldJson<double> {
  static Json write(double value) { return value; }
  static double read(const Json& json, const Place& place) {
    if (const auto* number = json.as<double>()) return *number;
    if (const auto* integer = json.as<std::int64_t>()) return static_cast<double>(*integer);
    refuse(place, "a number", json);
  }
};

/// The index of a name in the list.
std::size_t choice_from(const Json& json, const Place& place, std::span<const std::string_view> names) {
  const auto* const name = json.as<std::string>();
  const std::string_view meant = name == nullptr ? "" : choice_meant(*name);
  for (std::size_t i = 0; name != nullptr && i < names.size(); ++i) {
    if (names[i] == *name || names[i] == meant) return i;
  }
  const std::string hint = name == nullptr ? "" : suggestion(excerpt(*name), {names.begin(), names.end()});
  refuse(place, fmt::format("one of {}", fmt::join(names, ", ")), json, hint);
}

template <Choice E> struct FieldJson<E> {
  static Json write(E choice) { return choice_name(choice); }
  static E read(const Json& json, const Place& place) {
    return static_cast<E>(choice_from(json, place, ChoiceNames<E>::value));
  }
};

template <> struct FieldJson<bool> {
  static Json write(bool value) { return value; }
  static bool read(const Json& json, const Place& place) {
    if (const auto* answer = json.as<bool>()) return *answer;
    refuse(place, "true or false", json);
  }
};

/// null means "not given".
template <class T> struct FieldJson<std::optional<T>> {
  static Json write(const std::optional<T>& value) { return value ? FieldJson<T>::write(*value) : Json(nullptr); }
  static std::optional<T> read(const Json& json, const Place& place) {
    if (json.as<std::nullptr_t>() != nullptr) return std::nullopt;
    return FieldJson<T>::read(json, place);
  }
};

template <class T> struct FieldJson<std::vector<T>> {
  static Json write(const std::vector<T>& values) {
    Json::Array array;
    for (const T& value : values) array.push_back(FieldJson<T>::write(value));
    return array;
  }
  static std::vector<T> read(const Json& json, const Place& place) {
    const auto* const array = json.as<Json::Array>();
    if (array == nullptr) refuse(place, "a list", json);
    std::vector<T> values;
    for (const Json& value : *array) values.push_back(FieldJson<T>::read(value, place));
    return values;
  }
};

/// A field of some struct, without the struct's type: what follows is compiled once, not for each scheme.
struct AnyField {
  std::string_view name;
  void* at;
  void (*read)(void* at, const Json& json, const Place& place);
  Json (*write)(const void* at);
};

template <class T> void read_any(void* at, const Json& json, const Place& place) {
  *static_cast<T*>(at) = FieldJson<T>::read(json, place);
}
template <class T> Json write_any(const void* at) { return FieldJson<T>::write(*static_cast<const T*>(at)); }

template <class S> std::vector<AnyField> fields_of(S& value) {
  std::vector<AnyField> list;
  S::fields([&]<class T>(std::string_view name, T S::*member, std::string_view) {
    list.push_back({name, &(value.*member), &read_any<T>, &write_any<T>});
  });
  return list;
}

Json::Object write_fields(std::string_view kind, std::string_view name, const std::vector<AnyField>& fields) {
  Json::Object object;
  object.emplace_back(kind, name);
  for (const AnyField& field : fields) object.emplace_back(field.name, field.write(field.at));
  return object;
}
template <class S> Json::Object write_struct(std::string_view kind, S value) {
  return write_fields(kind, S::name, fields_of(value));
}

/// Reads one field by its name or an alias. `read` has the fields that were read before.
void read_field(const std::vector<AnyField>& fields, std::string_view owner, const std::string& key, const Json& json,
                std::vector<std::string_view>& read) {
  const auto named = [&](std::string_view name) {
    return std::find_if(fields.begin(), fields.end(), [&](const AnyField& field) { return field.name == name; });
  };
  auto field = named(key);
  if (field == fields.end()) field = named(field_meant(key));
  if (field == fields.end()) {
    std::vector<std::string_view> names;
    for (const AnyField& one : fields) names.push_back(one.name);
    raise(fmt::format("{}: unknown field {}{}", owner, dump_json(excerpt(key)), suggestion(excerpt(key), names)));
  }
  field->read(field->at, json, {owner, field->name});
  if (std::find(read.begin(), read.end(), field->name) != read.end()) {
    raise(fmt::format("{}: {} is given twice, under two names", owner, field->name));
  }
  read.push_back(field->name);
}

/// Reads every member of an object except the one that names its type.
void read_members(const std::vector<AnyField>& fields, std::string_view owner, const Json::Object& object,
                  std::string_view kind) {
  std::vector<std::string_view> read;
  for (const auto& [key, value] : object) {
    if (key != kind) read_field(fields, owner, key, value, read);
  }
}

/// One of several structs, distinguished by "type": {"type":"yarn","factor":4.0,…}.
template <class... S> struct FieldJson<std::variant<S...>> {
  using Value = std::variant<S...>;
  static Json write(const Value& value) {
    return std::visit([](const auto& one) -> Json { return write_struct("type", one); }, value);
  }
  static Value read(const Json& given, const Place& place) {
    const Json json = scaling_meant(given);
    const auto* const object = json.as<Json::Object>();
    const auto* const name = json.find<std::string>("type");
    const std::vector<std::string_view> names = {S::name...};
    std::vector<Value> values = {S{}...};
    for (std::size_t i = 0; name != nullptr && i < names.size(); ++i) {
      if (names[i] != *name) continue;
      const std::string owner = fmt::format("{}: {} {}", place.scheme, place.field, names[i]);
      read_members(std::visit([](auto& one) { return fields_of(one); }, values[i]), owner, *object, "type");
      return values[i];
    }
    const std::string hint = name == nullptr ? "" : suggestion(excerpt(*name), names);
    refuse(place, fmt::format("an object whose \"type\" is one of {}", fmt::join(names, ", ")), given, hint);
  }
};

template <> struct FieldJson<Boxed<RopeScaling>> {
  static Json write(const Boxed<RopeScaling>& value) { return FieldJson<RopeScaling>::write(*value); }
  static Boxed<RopeScaling> read(const Json& json, const Place& place) {
    return FieldJson<RopeScaling>::read(json, place);
  }
};

}  // namespace

Json json_of(const Scheme& scheme) {
  return std::visit([](const auto& one) -> Json { return write_struct("scheme", one); }, scheme);
}

std::string to_json(const Scheme& scheme) { return dump_json(json_of(scheme)); }

Scheme scheme_from_json(std::string_view json) { return scheme_from(parse_json(json)); }  // rejects repeated fields

Scheme scheme_from(const Json& root) {
  const auto* const object = root.as<Json::Object>();
  if (object == nullptr) {
    raise(fmt::format("scheme: must be an object such as {{\"scheme\":\"sinusoidal\"}} but is {}",
                      excerpt(dump_json(root))));
  }
  const Json* const name = root.find("scheme");
  if (name == nullptr) {
    raise(fmt::format("scheme: the field \"scheme\" is missing (one of {})", fmt::join(scheme_names(), ", ")));
  }
  if (name->as<std::string>() == nullptr) refuse({"scheme", "the field \"scheme\""}, "a name in quotes", *name);
  Scheme scheme = scheme_named(excerpt(scheme_meant(*name->as<std::string>())));
  read_members(std::visit([](auto& one) { return fields_of(one); }, scheme), name_of(scheme), *object, "scheme");
  return scheme;
}

}  // namespace posenc
