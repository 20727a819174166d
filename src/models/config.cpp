#include "models/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/excerpt.h"
#include "posenc/error.h"
#include "posenc/frequency.h"

namespace posenc::models {
namespace {

std::optional<double> as_number(const Json& json) {
  if (const auto* const number = json.as<double>()) return *number;
  if (const auto* const whole = json.as<std::int64_t>()) return static_cast<double>(*whole);
  return std::nullopt;
}

// A member of an object, or of one within it: "attn_config.alibi".
const Json* member(const Json* object, std::string_view key) {
  if (object == nullptr) return nullptr;
  const std::size_t dot = key.find('.');
  const Json* const json = object->find(key.substr(0, dot));
  return json == nullptr || dot == std::string_view::npos ? json : json->find(key.substr(dot + 1));
}

// The family's own name for a common key, or "".
std::string_view own_name(const Config& config, std::string_view key) {
  const Json* const names = config.defaults == nullptr ? nullptr : config.defaults->find("names");
  const Json* const name = names == nullptr ? nullptr : names->find(key);
  return name == nullptr ? "" : std::string_view(*name->as<std::string>());
}

const Json* in_file(const Config& config, std::string_view key) {
  if (config.read != nullptr) note(*config.read, std::string(key.substr(0, key.find('.'))));
  const Json* json = member(config.object, key);
  if (const std::string_view own = own_name(config, key); json == nullptr && !own.empty()) {
    json = member(config.object, own);
  }
  return json;
}

const Json* in_defaults(const Config& config, std::string_view key) {
  const Json* json = member(config.defaults, key);
  if (const std::string_view own = own_name(config, key); json == nullptr && !own.empty()) {
    json = member(config.defaults, own);
  }
  return json;
}

bool is_null(const Json& json) { return json.as<std::nullptr_t>() != nullptr; }

// Lists under `assumed` a value that was used but not given in the file.
void note_default(const Config& config, std::string_view key, const Json& value) {
  if (config.assumed == nullptr || in_file(config, key) != nullptr) return;
  note(*config.assumed,
       fmt::format("{}{} = {} (the family's default; not given)", config.place, key, excerpt(dump_json(value))));
}

template <class Rule> std::optional<double> number_by(const Config& config, std::string_view key,
                                                      std::string_view words, const Rule& rule) {
  const Json* const json = find(config, key);
  if (json == nullptr) return std::nullopt;
  const std::optional<double> number = as_number(*json);
  if (!number || !std::isfinite(*number) || !rule(*number)) refuse(config, key, words);
  note_default(config, key, *json);
  return number;
}

// `read` returns nothing for an element of another type.
template <class T, class Read> std::optional<std::vector<T>> list_by(const Config& config, std::string_view key,
                                                                     std::string_view words, const Read& read) {
  const Json* const json = find(config, key);
  if (json == nullptr) return std::nullopt;
  const auto* const array = json->as<Json::Array>();
  if (array == nullptr) refuse(config, key, words);
  std::vector<T> values;
  for (const Json& one : *array) {
    std::optional<T> value = read(one);
    if (!value) refuse(config, key, words);
    values.push_back(std::move(*value));
  }
  note_default(config, key, *json);
  return values;
}

}  // namespace

void note(std::vector<std::string>& list, std::string text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

const Json* find(const Config& config, std::string_view key) {
  const Json* json = in_file(config, key);
  // null is a value, but every class with its own rope_parameters uses them in place of null too
  if (json == nullptr || (is_null(*json) && key == "rope_parameters")) json = in_defaults(config, key);
  return json == nullptr || is_null(*json) ? nullptr : json;
}

bool is_given(const Config& config, std::string_view key) {
  const Json* const json = in_file(config, key);
  return json != nullptr && !is_null(*json);
}

std::string_view first_of(const Config& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (!key.empty() && is_given(config, key)) return key;
  }
  for (const std::string_view key : keys) {
    if (!key.empty() && find(config, key) != nullptr) return key;
  }
  return "";
}

void refuse(const Config& config, std::string_view key, std::string_view rule) {
  const Json* const json = find(config, key);
  // the JSON writer cannot represent these
  const auto* const number = json == nullptr ? nullptr : json->as<double>();
  const std::string value = json == nullptr                            ? "missing"
                            : number != nullptr && std::isnan(*number) ? "NaN"
                            : number != nullptr && std::isinf(*number) ? (*number > 0 ? "Infinity" : "-Infinity")
                                                                       : excerpt(dump_json(*json));
  raise(fmt::format("{}{} must be {} but is {}", config.place, key, rule, value));
}

std::optional<double> positive(const Config& config, std::string_view key) {
  return number_by(config, key, "a number above 0", [](double x) { return x > 0; });
}

std::optional<double> finite(const Config& config, std::string_view key) {
  return number_by(config, key, "a number", [](double) { return true; });
}

std::optional<double> share(const Config& config, std::string_view key) {
  return number_by(config, key, "above 0 and at most 1", [](double x) { return x > 0 && x <= 1; });
}

std::optional<std::int64_t> integer(const Config& config, std::string_view key, std::int64_t least) {
  const std::string words = fmt::format("an integer from {} to 2^53", least);
  const std::optional<double> number = number_by(config, key, words, [&](double x) {
    return x >= static_cast<double>(least) && x <= static_cast<double>(kPositionLimit) && x == std::floor(x);
  });
  return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
}

std::optional<std::string> text(const Config& config, std::string_view key) {
  const Json* const json = find(config, key);
  if (json == nullptr) return std::nullopt;
  const auto* const value = json->as<std::string>();
  if (value == nullptr) refuse(config, key, "a text");
  note_default(config, key, *json);
  return *value;
}

std::optional<bool> flag(const Config& config, std::string_view key) {
  const Json* const json = find(config, key);
  if (json == nullptr) return std::nullopt;
  const auto* const value = json->as<bool>();
  if (value == nullptr) refuse(config, key, "true or false");
  note_default(config, key, *json);
  return *value;
}

std::optional<std::vector<double>> numbers(const Config& config, std::string_view key) {
  return list_by<double>(config, key, "a list of numbers", [](const Json& one) {
    const std::optional<double> value = as_number(one);
    return value && std::isfinite(*value) ? value : std::nullopt;
  });
}

std::optional<std::vector<std::string>> texts(const Config& config, std::string_view key) {
  return list_by<std::string>(config, key, "a list of texts", [](const Json& one) {
    const auto* const value = one.as<std::string>();
    return value == nullptr ? std::nullopt : std::optional(excerpt(*value));
  });
}

std::optional<Config> nested(const Config& config, std::string_view key) {
  const Json* const json = find(config, key);
  if (json == nullptr) return std::nullopt;
  if (json->as<Json::Object>() == nullptr) refuse(config, key, "an object or null");
  return Config{.object = json, .place = fmt::format("{}{}: ", config.place, key)};
}

namespace {

bool holds_one(const Config& config, std::string_view condition) {
  const bool negated = condition.front() == '!';
  if (negated) condition.remove_prefix(1);
  const std::size_t equals = condition.find('=');
  const Json* const json = find(config, condition.substr(0, equals));
  bool answer = json != nullptr;
  if (answer && equals != std::string_view::npos) {
    const auto* const value = json->as<std::string>();
    answer = (value != nullptr ? *value : dump_json(*json)) == condition.substr(equals + 1);
  } else if (answer && json->as<bool>() != nullptr) {
    answer = *json->as<bool>();
  }
  return answer != negated;
}

}  // namespace

bool holds(const Config& config, std::string_view conditions) {
  while (!conditions.empty()) {
    const std::string_view one = conditions.substr(0, conditions.find(' '));
    if (!one.empty() && !holds_one(config, one)) return false;
    conditions.remove_prefix(std::min(conditions.size(), one.size() + 1));
  }
  return true;
}

}  // namespace posenc::models
