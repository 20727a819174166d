#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "formats/excerpt.h"
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
    for (std::size_t i = 0; name != nullptr && i < kNames.size(); ++i) {
      if (kNames[i] == *name) return static_cast<E>(i);
    }
    const std::string hint = name == nullptr ? "" : suggestion(excerpt(*name), {kNames.begin(), kNames.end()});
    refuse(place, fmt::format("one of {}", fmt::join(kNames, ", ")), json, hint);
  }
};

template <class S> Json::Object write_fields(const S& scheme) {
  Json::Object object;
  object.emplace_back("scheme", S::name);
  S::fields([&]<class T>(std::string_view name, T S::*member, std::string_view) {
    object.emplace_back(name, FieldJson<T>::write(scheme.*member));
  });
  return object;
}

template <class S> void read_field(S& scheme, const std::string& key, const Json& json) {
  bool known = false;
  std::vector<std::string_view> names;
  S::fields([&]<class T>(std::string_view name, T S::*member, std::string_view) {
    names.push_back(name);
    if (name != key) return;
    known = true;
    scheme.*member = FieldJson<T>::read(json, {S::name, name});
  });
  if (known) return;
  raise(fmt::format("{}: unknown field {}{}", S::name, dump_json(excerpt(key)), suggestion(excerpt(key), names)));
}

}  // namespace

std::string to_json(const Scheme& scheme) {
  return dump_json(std::visit([](const auto& one) { return write_fields(one); }, scheme));
}

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
  Scheme scheme = scheme_named(excerpt(*name->as<std::string>()));
  for (const auto& member : *object) {
    if (member.first == "scheme") continue;
    std::visit([&](auto& one) { read_field(one, member.first, member.second); }, scheme);
  }
  return scheme;
}

}  // namespace posenc
