// Progress as JSON: short, versioned, and parsed as untrusted input.
#include <fmt/format.h>

#include <limits>
#include <optional>

#include "posenc/error.h"
#include "posenc/json.h"
#include "posenc/review.h"

namespace posenc {
namespace {

constexpr std::string_view kFormat = "posenc-practice";
constexpr std::int64_t kVersion = 2;
constexpr JsonLimits kLimits = {.depth = 8, .bytes = 32'000'000, .values = 2'000'000, .text = 1000};
constexpr std::int64_t kFarthestDay = 10'000'000;  // about 27,000 years
constexpr std::int64_t kFarthestSecond = kFarthestDay * 86400;

std::int64_t whole(const Json* value, std::string_view where, std::int64_t least, std::int64_t most) {
  const auto* number = value == nullptr ? nullptr : value->as<std::int64_t>();
  if (number == nullptr || *number < least || *number > most) {
    raise(fmt::format("progress: {} must be a whole number from {} to {}", where, least, most));
  }
  return *number;
}

const Json* member(const Json& json, std::string_view name, std::string_view where) {
  const Json* found = json.find(name);
  if (found == nullptr) raise(fmt::format("progress: {} has no '{}'", where, name));
  return found;
}

double number(const Json& json, std::string_view name, const std::string& where, double least, double most) {
  const Json* value = member(json, name, where);
  const auto* real = value->as<double>();
  const auto* count = value->as<std::int64_t>();
  const double number = real != nullptr ? *real : count != nullptr ? static_cast<double>(*count) : least - 1;
  if (!(number >= least && number <= most)) {
    raise(fmt::format("progress: the {} of {} must be a number from {} to {}", name, where, least, most));
  }
  return number;
}

ReviewState state_from(const Json& json, const std::string& id) {
  const std::string where = fmt::format("item '{}'", id);
  ReviewState state;
  state.stability = number(json, "stability", where, kLeastStability, static_cast<double>(kLongestInterval));
  state.difficulty = number(json, "difficulty", where, 1, 10);
  state.last = whole(member(json, "last", where), where, 0, kFarthestDay);
  state.due = whole(member(json, "due", where), where, 0, kFarthestDay);
  state.repetitions = static_cast<int>(whole(member(json, "repetitions", where), where, 0, 1'000'000));
  state.lapses = static_cast<int>(whole(member(json, "lapses", where), where, 0, 1'000'000));
  return state;
}

// Grades of version 1 were SM-2's, 0 to 5.
int grade_of_version_1(std::int64_t grade) { return grade < 3 ? kAgain : static_cast<int>(grade) - 1; }

// [at, day, id, grade, again, milliseconds]
Review review_from(const Json& json, std::int64_t version) {
  constexpr std::string_view kWhere = "a review";
  const auto* entry = json.as<Json::Array>();
  if (entry == nullptr || entry->size() != 6) raise("progress: a review has six entries");
  Review review;
  review.at = whole(&(*entry)[0], kWhere, 0, kFarthestSecond);
  review.day = whole(&(*entry)[1], kWhere, 0, kFarthestDay);
  const auto* id = (*entry)[2].as<std::string>();
  if (id == nullptr) raise("progress: a review's id must be text");
  review.id = *id;
  const bool is_old = version == 1;
  const std::int64_t grade = whole(&(*entry)[3], kWhere, is_old ? 0 : kAgain, is_old ? 5 : kEasy);
  review.grade = is_old ? grade_of_version_1(grade) : static_cast<int>(grade);
  review.again = whole(&(*entry)[4], kWhere, 0, 1) == 1;
  review.milliseconds = whole(&(*entry)[5], kWhere, 0, std::numeric_limits<std::int64_t>::max());
  return review;
}

std::int64_t version_of(const Json& json) {
  const auto* name = json.find<std::string>("format");
  if (name == nullptr || *name != kFormat) raise(fmt::format("progress: \"format\" must be \"{}\"", kFormat));
  return whole(json.find("version"), "version", 1, std::numeric_limits<std::int64_t>::max());
}

// Finds the version in text that may not parse: an Error cannot be caught in builds without exceptions.
std::optional<std::int64_t> version_in(std::string_view text) {
  constexpr std::string_view kHead = "{\"format\":\"posenc-practice\",\"version\":";
  std::string dense;
  for (const char c : text.substr(0, 200)) {
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') dense += c;
  }
  if (!dense.starts_with(kHead)) return std::nullopt;
  std::int64_t version = 0;
  for (std::size_t i = kHead.size(); i < dense.size() && dense[i] >= '0' && dense[i] <= '9' && version < 1'000'000;
       ++i) {
    version = 10 * version + (dense[i] - '0');
  }
  return version;
}

}  // namespace

std::string to_json(const PracticeProgress& progress) {
  Json::Object items;
  for (const auto& [id, state] : progress.items) {
    items.emplace_back(id, Json::Object{{"stability", state.stability},
                                        {"difficulty", state.difficulty},
                                        {"last", state.last},
                                        {"due", state.due},
                                        {"repetitions", state.repetitions},
                                        {"lapses", state.lapses}});
  }
  Json::Array log;
  for (const Review& review : progress.log) {
    log.emplace_back(
        Json::Array{review.at, review.day, review.id, review.grade, review.again ? 1 : 0, review.milliseconds});
  }
  return dump_json(Json::Object{
             {"format", kFormat}, {"version", kVersion}, {"items", std::move(items)}, {"log", std::move(log)}}) +
         "\n";
}

bool is_newer_progress(std::string_view json) { return version_in(json).value_or(kVersion) > kVersion; }

PracticeProgress progress_from_json(std::string_view text) {
  const Json json = parse_json(text, kLimits);
  const std::int64_t version = version_of(json);
  if (version > kVersion) {
    raise(fmt::format("progress: version {} is not known here", version));
  }
  PracticeProgress progress;
  const auto* items = member(json, "items", "the file")->as<Json::Object>();
  const auto* log = member(json, "log", "the file")->as<Json::Array>();
  if (items == nullptr || log == nullptr) raise("progress: items must be an object and log an array");
  if (log->size() > kLongestLog) raise(fmt::format("progress: the log has more than {} reviews", kLongestLog));
  if (version == 1) {
    for (const Json& review : *log) record(progress, review_from(review, version));
    return progress;
  }
  for (const auto& [id, state] : *items) progress.items.emplace(id, state_from(state, id));
  for (const Json& review : *log) progress.log.push_back(review_from(review, version));
  return progress;
}

}  // namespace posenc
