#include "lessons/story_content.h"

#include <fmt/format.h>

#include "posenc/content.h"
#include "posenc/error.h"

namespace posenc::lessons {

StoryContent::StoryContent(std::string_view story)
    : name_(story), json_(parse_json(content(fmt::format("stories/{}.json", story)))) {}

void StoryContent::refuse(std::string_view key, std::string_view what) const {
  raise(fmt::format("content: stories/{}.json: {}: {}", name_, key, what));
}

const Json& StoryContent::member(std::string_view key) const {
  const Json* const found = json_.find(key);
  if (found == nullptr) refuse(key, "is missing");
  return *found;
}

double StoryContent::number_of(const Json& value, std::string_view key) const {
  if (const auto* const real = value.as<double>()) return *real;
  if (const auto* const whole = value.as<std::int64_t>()) return static_cast<double>(*whole);
  refuse(key, "is not a number");
}

std::string StoryContent::text(std::string_view key) const {
  const auto* const value = member(key).as<std::string>();
  if (value == nullptr) refuse(key, "is not text");
  return *value;
}

double StoryContent::number(std::string_view key) const { return number_of(member(key), key); }

std::int64_t StoryContent::integer(std::string_view key) const {
  const auto* const value = member(key).as<std::int64_t>();
  if (value == nullptr) refuse(key, "is not a whole number");
  return *value;
}

std::vector<double> StoryContent::numbers(std::string_view key) const {
  const auto* const list = member(key).as<Json::Array>();
  if (list == nullptr) refuse(key, "is not a list");
  std::vector<double> result;
  for (const Json& value : *list) result.push_back(number_of(value, key));
  return result;
}

std::vector<std::int64_t> StoryContent::integers(std::string_view key) const {
  const auto* const list = member(key).as<Json::Array>();
  if (list == nullptr) refuse(key, "is not a list");
  std::vector<std::int64_t> result;
  for (const Json& value : *list) {
    const auto* const whole = value.as<std::int64_t>();
    if (whole == nullptr) refuse(key, "is not a list of whole numbers");
    result.push_back(*whole);
  }
  return result;
}

std::vector<std::string> StoryContent::texts(std::string_view key) const {
  const auto* const list = member(key).as<Json::Array>();
  if (list == nullptr) refuse(key, "is not a list");
  std::vector<std::string> result;
  for (const Json& value : *list) {
    const auto* const words = value.as<std::string>();
    if (words == nullptr) refuse(key, "is not a list of texts");
    result.push_back(*words);
  }
  return result;
}

std::vector<double> StoryContent::table(std::string_view key) const {
  const auto* const list = member(key).as<Json::Array>();
  if (list == nullptr || list->empty()) refuse(key, "is not a table");
  std::vector<double> result;
  std::size_t width = 0;
  for (const Json& line : *list) {
    const auto* const row = line.as<Json::Array>();
    if (row == nullptr || row->empty()) refuse(key, "is not a table");
    if (width != 0 && row->size() != width) refuse(key, "has rows of different lengths");
    width = row->size();
    for (const Json& value : *row) result.push_back(number_of(value, key));
  }
  return result;
}

std::pair<std::string, std::string> StoryContent::step(std::string_view id) const {
  const Json* const found = member("steps").find(id);
  const auto* const heading = found == nullptr ? nullptr : found->find<std::string>("heading");
  const auto* const words = found == nullptr ? nullptr : found->find<std::string>("text");
  if (heading == nullptr || words == nullptr) refuse(fmt::format("steps.{}", id), "needs heading and text");
  return {*heading, *words};
}

std::string StoryContent::note(std::string_view id) const {
  const auto* const found = member("notes").find<std::string>(id);
  if (found == nullptr) refuse(fmt::format("notes.{}", id), "is not text");
  return *found;
}

std::vector<std::vector<std::string>> StoryContent::cells(std::string_view group, std::string_view matrix) const {
  const Json* const all = json_.find(group);
  const Json* const found = all == nullptr ? nullptr : all->find(matrix);
  if (found == nullptr) return {};
  const auto* const list = found->as<Json::Array>();
  if (list == nullptr) refuse(fmt::format("{}.{}", group, matrix), "is not a table");
  std::vector<std::vector<std::string>> result;
  for (const Json& line : *list) {
    const auto* const row = line.as<Json::Array>();
    if (row == nullptr) refuse(fmt::format("{}.{}", group, matrix), "is not a table");
    result.emplace_back();
    for (const Json& cell : *row) {
      const auto* const words = cell.as<std::string>();
      if (words == nullptr) refuse(fmt::format("{}.{}", group, matrix), "holds what is not text");
      result.back().push_back(*words);
    }
  }
  return result;
}

std::string StoryContent::printed_fact(std::string_view fact) const {
  const Json* const all = json_.find("printed_facts");
  const Json* const found = all == nullptr ? nullptr : all->find(fact);
  if (found == nullptr) return "";
  if (found->as<std::string>() == nullptr) refuse(fmt::format("printed_facts.{}", fact), "is not text");
  return *found->as<std::string>();
}

}  // namespace posenc::lessons
