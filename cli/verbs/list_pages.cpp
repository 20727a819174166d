#include "cli/verbs/list_pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "cli/system/terminal.h"
#include "posenc/aliases.h"
#include "posenc/content.h"
#include "posenc/json.h"
#include "posenc/model.h"
#include "posenc/report_json.h"
#include "posenc/scheme.h"

namespace posenc::cli {
namespace {

// What the library knows about a scheme, and what content/scheme_pages.json adds.
Json page_of(std::string_view scheme) {
  scheme_named(scheme);
  Json::Object page;
  const Json known = schemes_json();
  for (const Json& one : *known.find<Json::Array>("schemes")) {
    if (*one.find("name") != Json(scheme)) continue;
    for (const auto& [key, value] : *one.as<Json::Object>()) {
      if (key != "fields") {
        page.emplace_back(key, value);
        continue;
      }
      Json::Array fields;
      for (const Json& field : *value.as<Json::Array>()) {
        Json::Object whole = *field.as<Json::Object>();
        Json::Array others;
        for (const std::string_view other : other_names(*field.find<std::string>("name"))) {
          others.emplace_back(other);
        }
        whole.emplace_back("other_names", std::move(others));
        fields.emplace_back(std::move(whole));
      }
      page.emplace_back("fields", std::move(fields));
    }
  }
  const Json pages = parse_json(content("scheme_pages.json"));
  if (const Json* const more = pages.find(scheme)) {
    for (const auto& [key, value] : *more->as<Json::Object>()) page.emplace_back(key, value);
  }
  return page;
}

std::string text_in(const Json& json, std::string_view key) {
  const auto* const value = json.find<std::string>(key);
  return value == nullptr ? "" : *value;
}

class Page {
 public:
  Page() = default;
  explicit Page(std::string title) : text_(std::move(title) + "\n") {}
  void heading(std::string_view name) { text_ += fmt::format("\n{}\n", bold(name, colour_)); }
  void paragraph(std::string_view words, std::string_view first = "  ") {
    std::string left(first);
    for (const std::string& line : wrap(words, columns_ - columns_of(first))) {
      text_ += left + line + "\n";
      left = std::string(columns_of(first), ' ');
    }
  }
  std::string take() { return std::move(text_); }
  bool colour() const { return colour_; }

 private:
  bool colour_ = wants_colour(STDOUT_FILENO);
  int columns_ = std::min(output_columns(), 100);
  std::string text_;
};

void add_papers(Page& page, const Json& json) {
  const auto* const papers = json.find<Json::Array>("papers");
  if (papers == nullptr || papers->empty()) return;
  page.heading("Papers");
  for (const Json& paper : *papers) {
    page.paragraph(fmt::format("{}, {}: {}", text_in(paper, "authors"), dump_json(*paper.find("year")),
                               text_in(paper, "title")));
    page.paragraph(text_in(paper, "url"));
  }
}

void add_fields(Page& page, const Json& json) {
  const auto& fields = *json.find<Json::Array>("fields");
  if (fields.empty()) return;
  page.heading("Fields");
  int widest = 0;
  for (const Json& field : fields) widest = std::max(widest, columns_of(text_in(field, "name")));
  for (const Json& field : fields) {
    std::vector<std::string> others;
    for (const Json& other : *field.find<Json::Array>("other_names")) {
      others.push_back(*other.as<std::string>());
    }
    const Json& value = *field.find("default");
    const bool is_simple = value.as<Json::Object>() == nullptr && value.as<Json::Array>() == nullptr;
    std::string words = text_in(field, "help");
    if (is_simple) words += fmt::format(" (default {})", dump_json(value));
    if (!others.empty()) words += fmt::format("; also {}", fmt::join(others, ", "));
    page.paragraph(words, fmt::format("  {}  ", pad_right(text_in(field, "name"), widest)));
  }
}

void add_list(Page& page, const Json& json, std::string_view key, std::string_view title) {
  const auto* const list = json.find<Json::Array>(key);
  if (list == nullptr || list->empty()) return;
  page.heading(title);
  for (const Json& one : *list) page.paragraph(*one.as<std::string>(), "  - ");
}

}  // namespace

std::string scheme_page_as_text(std::string_view scheme) {
  const Json json = page_of(scheme);
  Page page(fmt::format("{}  {}", bold(scheme, wants_colour(STDOUT_FILENO)), text_in(json, "family")));
  page.paragraph(text_in(json, "idea"), "");
  page.heading("Formula");
  page.paragraph(text_in(json, "formula"));
  add_papers(page, json);
  add_fields(page, json);
  page.heading("Used by");
  page.paragraph(text_in(json, "used_by"));
  add_list(page, json, "pitfalls", "Pitfalls");
  add_list(page, json, "read", "Read on");
  return page.take();
}

std::string scheme_page_as_json(std::string_view scheme) { return dump_json(page_of(scheme), 2) + "\n"; }

std::string families_as_text() {
  std::map<std::string_view, std::vector<std::string_view>> by_scheme;
  for (const ModelType& one : model_types()) by_scheme[one.encodes_by].push_back(one.name);
  std::size_t count = 0;
  for (const auto& [scheme, names] : by_scheme) count += names.size();
  Page page;
  page.paragraph(fmt::format("{} values of model_type that posenc inspect knows, by how they encode position", count),
                 "");
  for (const auto& [scheme, names] : by_scheme) {
    page.heading(fmt::format("{} ({})", scheme, names.size()));
    page.paragraph(fmt::format("{}", fmt::join(names, " ")));
  }
  return page.take();
}

std::string families_as_json() {
  Json::Array list;
  for (const ModelType& one : model_types()) {
    list.emplace_back(Json::Object{{"model_type", one.name}, {"encodes_by", one.encodes_by}});
  }
  return dump_json(Json(std::move(list)), 2) + "\n";
}

}  // namespace posenc::cli
