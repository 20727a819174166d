// Worked examples of content/, as the program tells them.

#include "explorer/wasm/call.h"
#include "posenc/story.h"

namespace posenc::page {
namespace {

Story asked_story(const Json& fields) {
  StoryOptions options;
  options.text = text(fields, "text");
  if (fields.find("base") != nullptr) options.base = number(fields, "base", 0);
  if (fields.find("width") != nullptr) options.width = integer(fields, "width", 0);
  options.concatenated = flag(fields, "concatenated");
  return tell_story(text(fields, "name"), options);
}

Answer story(const Question& question) {
  if (text(question.fields, "name").empty()) {
    Json::Array list;
    for (const StoryCard& card : stories()) {
      list.push_back(Json::Object{{"name", card.name}, {"title", card.title}, {"summary", card.summary}});
    }
    return {list, {}};
  }
  return {to_json(asked_story(question.fields)), {}};
}

Answer cell(const Question& question) {
  return {to_json(expand_cell(asked_story(question.fields), text(question.fields, "cell"))), {}};
}

}  // namespace

std::span<const NamedCall> calls() {
  static constexpr NamedCall kCalls[] = {{"story", story}, {"cell", cell}};
  return kCalls;
}

}  // namespace posenc::page
