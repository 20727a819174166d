#include "cli/pages/worksheet.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/pages/flash_card.h"
#include "cli/pages/html.h"
#include "posenc/content.h"

namespace posenc::cli {
namespace {

constexpr std::string_view kRuledLines =
    "<div class=\"line\"></div><div class=\"line\"></div><div class=\"line\"></div>";

char letter_of(std::size_t place) { return static_cast<char>('a' + place); }

std::string blanks_of(const Walkthrough& one) {
  std::string text =
      fmt::format("<h2>{}</h2>\n<p>{}</p>\n<div class=\"rows\">\n", escaped_html(one.title), as_html(one.setup));
  for (const WalkthroughStep& step : one.steps) {
    text += fmt::format("<div><h3>{}</h3>\n<table>\n", escaped_html(step.heading));
    for (const WalkthroughBlank& blank : step.blanks) {
      text += fmt::format("<tr><td>{} ≈</td><td class=\"blank\"></td></tr>\n", escaped_html(blank.label));
    }
    text += "</table></div>\n";
  }
  return text +
         fmt::format("</div>\n<h3>Compare the rows</h3>\n<p>{}</p>\n{}\n", as_html(one.question.prompt), kRuledLines);
}

std::string asked(const PracticeItem& item, std::uint64_t seed) {
  if (const auto* fill_in = std::get_if<Exercise>(&item.what)) {
    return fmt::format("{}<span class=\"answer\">Answer</span>", as_html(fill_in->prompt));
  }
  const Question& question = std::get<Question>(item.what);
  std::string text = as_html(question.prompt);
  if (question.choices.empty()) return text + std::string(kRuledLines);
  text += "<ol class=\"choices\">\n";
  const std::vector<std::size_t> order = order_of_choices(question, seed);
  for (std::size_t i = 0; i < order.size(); ++i) {
    text += fmt::format("<li><span class=\"box\"></span> <b>&nbsp;{}</b>{}</li>\n", letter_of(i),
                        as_html(question.choices[order[i]].text));
  }
  return text + "</ol>";
}

std::string answered(const PracticeItem& item, std::uint64_t seed) {
  if (const auto* fill_in = std::get_if<Exercise>(&item.what)) {
    std::string text = fmt::format("<b>{}</b>. {}", shown_answer(*fill_in), as_html(fill_in->working));
    if (!fill_in->command.empty()) {
      text += fmt::format("<span class=\"where\"><code>{}</code></span>", escaped_html(fill_in->command));
    }
    return text;
  }
  const Question& question = std::get<Question>(item.what);
  std::string text;
  const std::vector<std::size_t> order = order_of_choices(question, seed);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (question.choices[order[i]].right) text = fmt::format("<b>{}</b>. ", letter_of(i));
  }
  return text +
         fmt::format("{}<span class=\"where\">{}</span>", as_html(question.answer), escaped_html(question.source));
}

template <class Text> std::string numbered(const Worksheet& sheet, const Text& text_of) {
  std::string text = "<ol class=\"items\">\n";
  for (const PracticeItem& item : sheet.items) {
    text += fmt::format("<li id=\"{}\">{}</li>\n", text_of.id(item), text_of.text(item, sheet.seed));
  }
  return text + "</ol>\n";
}

struct AskedText {
  static std::string id(const PracticeItem& item) { return escaped_html(item.id()); }
  static std::string text(const PracticeItem& item, std::uint64_t seed) { return asked(item, seed); }
};
struct AnswerText {
  static std::string id(const PracticeItem& item) { return escaped_html(item.id() + "-answer"); }
  static std::string text(const PracticeItem& item, std::uint64_t seed) { return answered(item, seed); }
};

}  // namespace

Worksheet worksheet_of(const std::string& tag, std::uint64_t seed, std::int64_t count) {
  Worksheet sheet;
  sheet.seed = seed;
  sheet.command = fmt::format("posenc cards --worksheet{} --seed {} --count {} -o worksheet.html",
                              tag.empty() ? "" : " --tag " + tag, seed, count);
  std::vector<std::string> topics;
  PracticeWish wish;
  wish.tag = tag;
  wish.seed = seed;
  wish.count = count;
  wish.without_cards = true;
  std::vector<std::string> asked_ids;
  for (Walkthrough& one : walkthroughs()) {
    if (tag != one.topic && tag != one.id) continue;
    asked_ids.push_back(one.question.id);
    sheet.walkthroughs.push_back(std::move(one));
  }
  // No question is asked twice, not even that of a walkthrough, and no kind of exercise appears twice.
  for (PracticeItem& item : practice_plan(wish, {})) {
    if (std::find(asked_ids.begin(), asked_ids.end(), item.id()) != asked_ids.end()) continue;
    asked_ids.push_back(item.id());
    sheet.items.push_back(std::move(item));
  }
  sheet.title = "Worksheet: how a Transformer knows word order";
  for (const PracticeItem& item : sheet.items) {
    if (std::find(topics.begin(), topics.end(), item.topic()) == topics.end()) topics.push_back(item.topic());
  }
  const bool is_topic = std::find(topics.begin(), topics.end(), tag) != topics.end();
  if (is_topic || topics.size() == 1) {
    sheet.title = fmt::format("Worksheet: {}", topic_title(is_topic ? tag : topics.front()));
  }
  return sheet;
}

std::string worksheet_page(const Worksheet& sheet, const Paper& paper) {
  std::string rows, filled;
  for (const Walkthrough& one : sheet.walkthroughs) {
    rows += blanks_of(one);
    filled += fmt::format("<h3>{}</h3>\n", escaped_html(one.title));
    for (const WalkthroughStep& step : one.steps) filled += fmt::format("<p>{}</p>\n", escaped_html(step.result));
    filled += fmt::format("<p>{}<span class=\"where\">{}</span></p>\n", as_html(one.question.answer),
                          escaped_html(one.source));
  }
  const std::string title = escaped_html(sheet.title);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
      "<style>@page {{ size: {1} portrait; margin: 17mm 18mm; }}\n{2}</style>\n</head>\n<body>\n"
      "<main>\n<h1>{0}</h1>\n<p class=\"who\"><span>Name</span><span>Date</span></p>\n{3}{4}</main>\n"
      "<section class=\"key\">\n<h1>Answer key</h1>\n{5}{6}"
      "<p class=\"foot\">The same sheet again: <code>{7}{8}</code></p>\n</section>\n</body>\n</html>\n",
      title, paper.name, content("pages/worksheet.css"), rows, numbered(sheet, AskedText{}), filled,
      numbered(sheet, AnswerText{}), escaped_html(sheet.command),
      paper.name == kLetter.name ? " --paper letter" : "");
}

}  // namespace posenc::cli
