#include "models/config.h"

#include <fmt/format.h>

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

template <class Rule> std::optional<double> number_by(const Config& config, std::string_view key,
                                                      std::string_view words, const Rule& rule) {
  const Json* const json = find(config, key);
  if (json == nullptr) return std::nullopt;
  const std::optional<double> number = as_number(*json);
  if (!number || !std::isfinite(*number) || !rule(*number)) refuse(config, key, words);
  return number;
}

}  // namespace

const Json* find(const Config& config, std::string_view key) {
  const std::size_t dot = key.find('.');
  const Json* json = config.object->find(key.substr(0, dot));
  if (json != nullptr && dot != std::string_view::npos) json = json->find(key.substr(dot + 1));
  return json == nullptr || json->as<std::nullptr_t>() != nullptr ? nullptr : json;
}

std::string_view first_of(const Config& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (!key.empty() && find(config, key) != nullptr) return key;
  }
  return "";
}

void refuse(const Config& config, std::string_view key, std::string_view rule) {
  const Json* const json = find(config, key);
  // the writer of JSON has no word for these
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
  return *value;
}

std::optional<bool> flag(const Config& config, std::string_view key) {
  const Json* const json = find(config, key);
  if (json == nullptr) return std::nullopt;
  const auto* const value = json->as<bool>();
  if (value == nullptr) refuse(config, key, "true or false");
  return *value;
}

std::optional<std::vector<double>> numbers(const Config& config, std::string_view key) {
  const Json* const json = find(config, key);
  if (json == nullptr) return std::nullopt;
  const auto* const array = json->as<Json::Array>();
  if (array == nullptr) refuse(config, key, "a list of numbers");
  std::vector<double> values;
  for (const Json& one : *array) {
    const std::optional<double> value = as_number(one);
    if (!value || !std::isfinite(*value)) refuse(config, key, "a list of numbers");
    values.push_back(*value);
  }
  return values;
}

std::optional<Config> nested(const Config& config, std::string_view key) {
  const Json* const json = find(config, key);
  if (json == nullptr) return std::nullopt;
  if (json->as<Json::Object>() == nullptr) refuse(config, key, "an object or null");
  return Config{json, fmt::format("{}{}: ", config.place, key)};
}

bool holds(const Config& config, std::string_view condition) {
  if (condition.empty()) return true;
  const bool negated = condition.front() == '!';
  if (negated) condition.remove_prefix(1);
  const std::size_t equals = condition.find('=');
  const Json* const json = find(config, condition.substr(0, equals));
  bool answer = json != nullptr;
  if (answer && equals != std::string_view::npos) {
    const auto* const value = json->as<std::string>();
    answer = value != nullptr && *value == condition.substr(equals + 1);
  } else if (answer && json->as<bool>() != nullptr) {
    answer = *json->as<bool>();
  }
  return answer != negated;
}

}  // namespace posenc::models
