#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
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

/// How a field of type T stands in JSON. A new type of field needs one more of these, and nothing else here.
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

template <Choice E> struct FieldJson<E> {
  static Json write(E choice) { return choice_name(choice); }
  static E read(const Json& json, const Place& place) {
    constexpr auto& kNames = ChoiceNames<E>::value;
    const auto* const name = json.as<std::string>();
    const std::string_view meant = name == nullptr ? "" : choice_meant(*name);
    for (std::size_t i = 0; name != nullptr && i < kNames.size(); ++i) {
      if (kNames[i] == *name || kNames[i] == meant) return static_cast<E>(i);
    }
    const std::string hint = name == nullptr ? "" : suggestion(excerpt(*name), {kNames.begin(), kNames.end()});
    refuse(place, fmt::format("one of {}", fmt::join(kNames, ", ")), json, hint);
  }
};

template <> struct FieldJson<bool> {
  static Json write(bool value) { return value; }
  static bool read(const Json& json, const Place& place) {
    if (const auto* answer = json.as<bool>()) return *answer;
    refuse(place, "true or false", json);
  }
};

/// null stands for "not given".
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

template <class S> Json::Object write_fields(const S& value, std::string_view kind) {
  Json::Object object;
  object.emplace_back(kind, S::name);
  S::fields([&]<class T>(std::string_view name, T S::*member, std::string_view) {
    object.emplace_back(name, FieldJson<T>::write(value.*member));
  });
  return object;
}

/// Reads one field by its name, or by another name of it. `read` has the fields that were read before.
template <class S> void read_field(S& value, std::string_view owner, const std::string& key, const Json& json,
                                   std::vector<std::string_view>& read) {
  bool known = false;
  std::vector<std::string_view> names;
  S::fields([&]<class T>(std::string_view name, T S::*, std::string_view) { names.push_back(name); });
  const bool is_ours = std::find(names.begin(), names.end(), key) != names.end();
  const std::string_view wanted = is_ours ? std::string_view(key) : field_meant(key);
  S::fields([&]<class T>(std::string_view name, T S::*member, std::string_view) {
    if (name != wanted) return;
    known = true;
    value.*member = FieldJson<T>::read(json, {owner, name});
  });
  if (known) {
    if (std::find(read.begin(), read.end(), wanted) != read.end()) {
      raise(fmt::format("{}: {} is given twice, under two names", owner, wanted));
    }
    read.push_back(*std::find(names.begin(), names.end(), wanted));
    return;
  }
  raise(fmt::format("{}: unknown field {}{}", owner, dump_json(excerpt(key)), suggestion(excerpt(key), names)));
}

/// One of several structs, told apart by "type": {"type":"yarn","factor":4.0,…}.
template <class... S> struct FieldJson<std::variant<S...>> {
  using Value = std::variant<S...>;
  static Json write(const Value& value) {
    return std::visit([](const auto& one) -> Json { return write_fields(one, "type"); }, value);
  }
  static Value read(const Json& given, const Place& place) {
    const Json json = scaling_meant(given);
    const auto* const object = json.as<Json::Object>();
    const Json* const type = object == nullptr ? nullptr : json.find("type");
    const auto* const name = type == nullptr ? nullptr : type->as<std::string>();
    const std::vector<std::string_view> names = {S::name...};
    std::vector<Value> values = {S{}...};
    for (std::size_t i = 0; name != nullptr && i < names.size(); ++i) {
      if (names[i] != *name) continue;
      const std::string owner = fmt::format("{}: {} {}", place.scheme, place.field, names[i]);
      std::vector<std::string_view> read;
      for (const auto& member : *object) {
        if (member.first == "type") continue;
        std::visit([&](auto& one) { read_field(one, owner, member.first, member.second, read); }, values[i]);
      }
      return values[i];
    }
    const std::string hint = name == nullptr ? "" : suggestion(excerpt(*name), names);
    refuse(place, fmt::format("an object whose \"type\" is one of {}", fmt::join(names, ", ")), given, hint);
  }
};

}  // namespace

Json json_of(const Scheme& scheme) {
  return std::visit([](const auto& one) -> Json { return write_fields(one, "scheme"); }, scheme);
}

std::string to_json(const Scheme& scheme) { return dump_json(json_of(scheme)); }

Scheme scheme_from_json(std::string_view json) {
  const Json root = parse_json(json);  // refuses repeated fields
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
  std::vector<std::string_view> read;
  for (const auto& member : *object) {
    if (member.first == "scheme") continue;
    std::visit([&]<class S>(S& one) { read_field(one, S::name, member.first, member.second, read); }, scheme);
  }
  return scheme;
}

}  // namespace posenc
