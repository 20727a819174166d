#include "posenc/figures.h"

#include <string_view>

#include "c_api/arguments.h"
#include "posenc/json.h"

using namespace posenc;         // NOLINT(google-build-using-namespace)
using namespace posenc::c_api;  // NOLINT(google-build-using-namespace)

namespace {

[[noreturn]] void refuse_key(std::string_view key, std::string_view rule) {
  refuse(fmt::format("figure: {} must be {}", key, rule));
}

std::int64_t integer_of(const Json& json, std::string_view key) {
  if (const auto* const value = json.as<std::int64_t>()) return *value;
  refuse_key(key, "an integer");
}

std::vector<std::int64_t> integers_of(const Json& json, std::string_view key) {
  const auto* const list = json.as<Json::Array>();
  if (list == nullptr) refuse_key(key, "a list of integers");
  std::vector<std::int64_t> values;
  for (const Json& one : *list) values.push_back(integer_of(one, key));
  return values;
}

void take_member(figures::Request& request, const std::string& key, const Json& value) {
  if (key == "schemes") {
    const auto* const list = value.as<Json::Array>();
    if (list == nullptr) refuse_key(key, "a list of schemes");
    for (const Json& one : *list) request.schemes.push_back({.scheme = scheme_from_json(dump_json(one))});
  } else if (key == "zoom") {
    const std::vector<std::int64_t> ends = integers_of(value, key);
    if (ends.size() != 2) refuse_key(key, "[from, to]");
    request.zoom = {.from = ends[0], .to = ends[1]};
  } else if (key == "at") {
    request.at = integer_of(value, key);
  } else if (key == "shift") {
    request.shift = integer_of(value, key);
  } else if (key == "features") {
    request.features = integers_of(value, key);
  } else if (key == "numerics") {
    const auto* const name = value.as<std::string>();
    if (name == nullptr) refuse_key(key, "a name");
    request.numerics = numerics_from(*name);
  } else if (key == "length") {
    request.length = integer_of(value, key);
  } else if (key == "trained") {
    request.trained = integer_of(value, key);
  } else if (key == "factor") {
    const auto* const number = value.as<double>();
    request.factor = number != nullptr ? *number : static_cast<double>(integer_of(value, key));
  } else if (key == "lines") {
    const auto* const answer = value.as<bool>();
    if (answer == nullptr) refuse_key(key, "true or false");
    request.as_lines = *answer;
  } else {
    refuse(fmt::format("figure: unknown key \"{}\"", key));
  }
}

}  // namespace

extern "C" {

int posenc_figure(const char* kind, const char* request_json, char** json) {
  return guarded([&] {
    require(kind, "figure", "the kind");
    require(json, "figure", "json");
    figures::Request request;
    if (request_json != nullptr) {
      const Json given = parse_json(request_json);
      const auto* const members = given.as<Json::Object>();
      if (members == nullptr) refuse("figure: the request must be a JSON object");
      for (const auto& member : *members) take_member(request, member.first, member.second);
    }
    *json = text_from(dump_json(figures::to_json(figures::make(kind, request))));
  });
}

}  // extern "C"
