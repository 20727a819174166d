#include "lessons/content_json.h"

#include <fmt/format.h>

#include "posenc/content.h"
#include "posenc/error.h"

namespace posenc::lessons {

void complain(std::string_view where, std::string_view what) { raise(fmt::format("content: {}: {}", where, what)); }

std::string text_of(const Json& json, std::string_view name, std::string_view where, bool required) {
  const Json* found = json.find(name);
  const auto* text = found == nullptr ? nullptr : found->as<std::string>();
  if (text != nullptr) return *text;
  if (found != nullptr || required) complain(where, fmt::format("'{}' must be text", name));
  return "";
}

const Json::Array& list_of(const Json& json, std::string_view name, std::string_view where) {
  const auto* const list = json.find<Json::Array>(name);
  if (list == nullptr) complain(where, fmt::format("'{}' must be a list", name));
  return *list;
}

std::vector<std::string> topics() {
  std::vector<std::string> names;
  const Json file = parse_json(content("topics.json"));
  for (const Json& topic : list_of(file, "topics", "topics.json")) {
    names.push_back(text_of(topic, "name", "topics.json"));
  }
  return names;
}

std::vector<std::string> story_names() {
  std::vector<std::string> names;
  const Json file = parse_json(content("topics.json"));
  for (const Json& topic : list_of(file, "topics", "topics.json")) {
    for (const Json& name : list_of(topic, "stories", "topics.json")) {
      if (name.as<std::string>() == nullptr) complain("topics.json", "a story must be a name");
      names.push_back(*name.as<std::string>());
    }
  }
  return names;
}

}  // namespace posenc::lessons
