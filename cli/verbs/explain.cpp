#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cli/arrays/numbers.h"
#include "cli/pages/story_markdown.h"
#include "cli/pages/story_text.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/verbs.h"
#include "posenc/error.h"
#include "posenc/story.h"

namespace posenc::cli {
namespace {

constexpr int kStoryColumns = 80;  // longer lines of prose are hard to read

struct ExplainFlags {
  std::string story, cell, text, other, start;
  std::optional<double> base;
  std::optional<std::int64_t> digits, width;
  bool concatenate = false, errata = false, python = false, json = false, markdown = false;
};

std::string list_of_stories(const ExplainFlags& flags) {
  const bool colour = wants_colour(STDOUT_FILENO);
  const int columns = std::min(output_columns(), kStoryColumns);
  const std::vector<StoryCard> cards = stories();
  if (flags.json) {
    Json::Array list;
    for (const StoryCard& card : cards) {
      list.push_back(Json::Object{{"story", card.name}, {"title", card.title}, {"summary", card.summary}});
    }
    return dump_json(Json(std::move(list)), 2) + "\n";
  }
  int width = 0;
  for (const StoryCard& card : cards) width = std::max(width, columns_of(card.name));
  std::string text;
  for (const StoryCard& card : cards) {
    if (flags.markdown) {
      text += fmt::format("- `{}`: {}\n", card.name, card.summary);
      continue;
    }
    std::string name = bold(pad_right(card.name, width), colour);
    for (const std::string& line : wrap(card.summary, columns - width - 2)) {
      text += fmt::format("{}  {}\n", name, line);
      name = pad_right("", width);
    }
  }
  return flags.markdown
             ? text
             : text +
                   "\nposenc explain STORY shows one; --cell \"MATRIX ROW COLUMN\" shows how a cell is computed.\n";
}

std::string message_of(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Corrections of the text that an example follows, which few readers have.
bool is_about_the_source(const StoryBlock& block) {
  const auto* const note = std::get_if<StoryNote>(&block);
  return std::holds_alternative<StoryErrata>(block) ||
         (note != nullptr && (!note->misprints.empty() || note->text.starts_with("The text this example follows ")));
}

Story without_errata(Story story) {
  std::erase_if(story.steps, [](const StoryStep& step) {
    return std::any_of(step.blocks.begin(), step.blocks.end(),
                       [](const StoryBlock& block) { return std::holds_alternative<StoryErrata>(block); });
  });
  for (StoryStep& step : story.steps) std::erase_if(step.blocks, is_about_the_source);
  return story;
}

std::string told(const ExplainFlags& flags) {
  StoryOptions options;
  options.text = flags.text;
  options.other = flags.other;
  for (std::size_t from = 0; !flags.start.empty() && from <= flags.start.size();) {
    const std::size_t end = std::min(flags.start.find(',', from), flags.start.size());
    options.start.push_back(number_from(flags.start.substr(from, end - from), "--start"));
    from = end + 1;
  }
  options.base = flags.base;
  options.width = flags.width;
  options.concatenated = flags.concatenate;
  options.message_of = message_of;
  if (flags.digits) options.digits = static_cast<int>(*flags.digits);
  const Story story = tell_story(flags.story, options);
  const bool colour = wants_colour(STDOUT_FILENO);
  const int columns = std::min(output_columns(), kStoryColumns);
  if (flags.python) return story.python;
  if (flags.cell.empty()) {
    if (flags.json) return dump_json(to_json(story), 2) + "\n";
    const Story shown = flags.errata ? story : without_errata(story);
    return flags.markdown ? story_markdown(shown) : story_text(shown, columns, colour);
  }
  CellExpansion cell = expand_cell(story, flags.cell);
  if (flags.json) return dump_json(to_json(cell), 2) + "\n";
  if (!flags.errata) cell.misprint.reset();
  return flags.markdown ? cell_markdown(cell) : cell_text(cell, columns, colour);
}

int run(const ExplainFlags& flags, const Command& command) {
  if (flags.json && flags.markdown) refuse("explain: --json and --markdown cannot be combined");
  if (flags.python && (flags.json || flags.markdown || !flags.cell.empty())) {
    refuse("explain: --python cannot be combined with --cell, --json or --markdown");
  }
  if (flags.story.empty()) {
    for (const char* const flag : {"--cell", "--text", "--other", "--start", "--base", "--width", "--concatenate",
                                   "--digits", "--errata", "--python"}) {
      if (command.is_given(flag)) refuse(fmt::format("explain: {} needs a story (posenc explain lists them)", flag));
    }
    print(list_of_stories(flags));
    return kDone;
  }
  if (command.is_given("--text") && flags.text.empty()) refuse("--text is empty");
  if (command.is_given("--other") && flags.text.empty()) refuse("--other: needs --text, the first sentence");
  if (command.is_given("--cell") && flags.cell.empty()) refuse("--cell is empty");
  print(told(flags));
  return kDone;
}

}  // namespace

Verb explain_verb(Command program) {
  Verb verb;
  verb.name = "explain";
  verb.summary = "show worked examples step by step, every number computed";
  verb.usage = "[STORY] [options]";
  verb.details =
      "Without STORY, lists the stories. A story works through a small example; every number in it is computed, none "
      "is stored. Some examples follow a published text; --errata lists the numbers that differ there. --cell shows the "
      "numbers that a cell is computed from; row and column may be abbreviated if that is unambiguous.";
  verb.examples =
      "posenc explain\n"
      "posenc explain dog-bites-man\n"
      "posenc explain dog-bites-man --text \"the cat saw the dog\"\n"
      "posenc explain dog-bites-man --text \"Emma likes Alex\" --other \"Alex likes Emma\"\n"
      "posenc explain frank-and-alex --cell \"K'[Frank, knows-upscale]\"\n"
      "posenc explain dot-product --digits 6 --markdown\n"
      "posenc explain rope --python";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<ExplainFlags>();
  verb.command.add_option("STORY", flags->story);
  verb.command
      .add_option("--cell", flags->cell,
                  "show how one cell is computed: \"MATRIX ROW COLUMN\" or \"MATRIX[ROW, COLUMN]\"")
      .type_name("CELL");
  verb.command
      .add_option("--text", flags->text,
                  "your own sentence, 2 to 12 words (dog-bites-man), or order of seats (frank-and-alex)")
      .type_name("WORDS");
  verb.command.add_option("--other", flags->other, "compare with this sentence: the same words in another order")
      .type_name("WORDS");
  verb.command
      .add_option("--start", flags->start, "your own vector for position 0, e.g. 0.1,-0.4,0.7,0 (cat-sat, shift)")
      .type_name("LIST");
  verb.command.add_number("--base", flags->base, {.least = 1}, "base of the frequencies of P (frank-and-alex)")
      .default_value("10000");
  verb.command.add_integer("--width", flags->width, {2, 6}, "features of a row, d: 2, 4 or 6 (frank-and-alex)")
      .default_value("6");
  verb.command.add_flag("--concatenate", flags->concatenate, "[X P] instead of X + P (frank-and-alex)");
  constexpr std::int64_t kMostDigits = 17;
  verb.command.add_integer("--digits", flags->digits, {0, kMostDigits}, "digits after the decimal point")
      .default_value("3");
  verb.command.add_flag("--errata", flags->errata,
                        "also list numbers that differ in the text that an example follows");
  verb.command.add_flag("--python", flags->python, "print a few lines of numpy that compute the story's numbers");
  verb.command.add_flag("--json", flags->json, "print one JSON document with full precision");
  verb.command.add_flag("--markdown", flags->markdown, "print Markdown with tables");
  verb.run = [flags, verb] { return run(*flags, verb.command); };
  return verb;
}

}  // namespace posenc::cli
