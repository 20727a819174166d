#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cli/arrays/numbers.h"
#include "cli/pages/flash_card.h"
#include "cli/pages/worksheet.h"
#include "cli/system/failure.h"
#include "cli/system/output_file.h"
#include "cli/system/streams.h"
#include "cli/verbs/verbs.h"
#include "posenc/question.h"
#include "posenc/scheme.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kLongestDeckName = 200;

struct CardsFlags {
  std::string output, format, tag, deck = "posenc", per_page, paper;
  std::optional<std::int64_t> seed, count;
  bool worksheet = false, force = false, quiet = false;
};

std::string format_of(const CardsFlags& flags) {
  for (const std::string_view known : {"tsv", "apkg", "html"}) {
    if (flags.format == known) return flags.format;
    if (flags.format.empty() && flags.output.ends_with("." + std::string(known))) return std::string(known);
  }
  if (flags.output == "-") refuse("cards: -o - needs --format tsv, apkg or html");
  refuse(fmt::format("{}: the output must be a .tsv, .apkg or .html file", flags.output));
}

int per_page_of(const CardsFlags& flags, const std::string& format) {
  if (!flags.per_page.empty() && format != "html") refuse("--per-page: works only with .html");
  if (!flags.paper.empty() && format != "html") refuse("--paper: works only with .html");
  if (flags.worksheet && format != "html") refuse("--worksheet: the output must be an .html file");
  if (flags.worksheet && !flags.per_page.empty()) refuse("--per-page: works only with cards, not with --worksheet");
  if (!flags.worksheet && flags.seed) refuse("--seed: works only with --worksheet");
  if (!flags.worksheet && flags.count) refuse("--count: works only with --worksheet");
  return flags.per_page == "1" ? 1 : 8;
}

std::vector<Card> chosen_cards(const std::string& tag) {
  std::vector<Card> all = cards();
  if (tag.empty()) return all;
  std::set<std::string_view> known;
  std::vector<Card> chosen;
  for (const Card& card : all) {
    known.insert(card.tags.begin(), card.tags.end());
    if (std::find(card.tags.begin(), card.tags.end(), tag) != card.tags.end()) chosen.push_back(card);
  }
  if (chosen.empty()) {
    refuse(fmt::format("--tag: no card is tagged '{}' ({})", tag, suggestion(tag, {known.begin(), known.end()})));
  }
  return chosen;
}

// Packages contain their creation time. Reproducible builds set SOURCE_DATE_EPOCH.
std::int64_t seconds_now() {
  const char* const fixed = std::getenv("SOURCE_DATE_EPOCH");
  if (fixed == nullptr || *fixed == '\0') return static_cast<std::int64_t>(std::time(nullptr));
  const std::int64_t seconds = integer_from(fixed, "SOURCE_DATE_EPOCH");
  constexpr std::int64_t kYear9999 = 253'402'300'799;
  if (seconds < 0 || seconds > kYear9999)
    refuse(fmt::format("SOURCE_DATE_EPOCH: {} is not a valid timestamp", seconds));
  return seconds;
}

constexpr std::int64_t kItemsOfSheet = 12, kMostOfSheet = 100;

Worksheet chosen_worksheet(const CardsFlags& flags) {
  const std::uint64_t seed =
      flags.seed ? static_cast<std::uint64_t>(*flags.seed) : std::random_device()() % 1'000'000;
  return worksheet_of(flags.tag, seed, flags.count.value_or(kItemsOfSheet));
}

void check_deck(const std::string& deck) {
  if (deck.empty() || deck.size() > kLongestDeckName) refuse("--deck: the name must have 1 to 200 bytes");
  for (const char c : deck) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      refuse("--deck: the name must not contain control characters");
  }
}

int run(const CardsFlags& flags) {
  if (flags.output.empty()) refuse("cards: the output is missing (-o FILE.tsv, .apkg or .html)");
  check_deck(flags.deck);
  const std::string format = format_of(flags);
  const int per_page = per_page_of(flags, format);
  const Paper& paper = flags.paper == "letter" ? kLetter : kA4;
  Worksheet sheet;
  std::vector<Card> chosen;
  if (flags.worksheet) {
    sheet = chosen_worksheet(flags);
  } else {
    chosen = chosen_cards(flags.tag);
  }
  if (flags.output == "-" && format == "apkg" && isatty(STDOUT_FILENO) == 1) {
    refuse("cards: .apkg is binary and standard output is a terminal; redirect it");
  }
  const auto bytes = [&] {
    if (format == "tsv") return cards_as_tsv(chosen, flags.deck);
    if (flags.worksheet) return worksheet_page(sheet, paper);
    if (format == "html") return cards_as_page(chosen, flags.deck, per_page, paper);
    return cards_as_apkg(chosen, flags.deck, seconds_now());
  };
  if (flags.output == "-") {
    print(bytes());
    return kDone;
  }
  OutputFile file(output_target(flags.output, flags.force));
  file.write(bytes());
  file.publish();
  if (flags.quiet) return kDone;
  tell(flags.worksheet ? fmt::format("wrote {}: {} questions, seed {}", flags.output, sheet.items.size(), sheet.seed)
                       : fmt::format("wrote {}: {} cards", flags.output, chosen.size()));
  return kDone;
}

}  // namespace

Verb cards_verb(Command program) {
  Verb verb;
  verb.name = "cards";
  verb.summary = "export flash cards for Anki or print, and worksheets with answer keys";
  verb.usage = "-o FILE.tsv|.apkg|.html [--tag TAG] [--worksheet]";
  verb.details =
      "A .tsv file is text for Anki's File > Import, an .apkg file an Anki package to double-click, an .html file a "
      "page to print double-sided. Cards keep their identity: importing a newer file updates existing cards and "
      "keeps their progress. With --worksheet, writes a page of questions and exercises with room for answers, and the "
      "answer key on pages of its own. Every number is computed.";
  verb.examples =
      "posenc cards -o posenc.apkg\n"
      "posenc cards -o posenc.tsv --deck Transformers\n"
      "posenc cards -o rope.html --tag rope --per-page 1\n"
      "posenc cards -o worksheet.html --worksheet --tag sinusoidal --paper letter --seed 7";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<CardsFlags>();
  verb.command.add_option("-o,--output", flags->output, "output file; - for standard output").type_name("FILE");
  verb.command.add_choice("--format", flags->format, {"tsv", "apkg", "html"},
                          "tsv, apkg or html (default: from the name of FILE)");
  verb.command.add_option("--tag", flags->tag, "only cards with this tag: rope, alibi, scaling …").type_name("TAG");
  verb.command.add_option("--deck", flags->deck, "name of the deck").type_name("NAME").default_value(flags->deck);
  verb.command.add_choice("--per-page", flags->per_page, {"1", "8"}, "for .html: 1 or 8 cards per sheet")
      .type_name("N")
      .default_value("8");
  verb.command.add_choice("--paper", flags->paper, {"a4", "letter"}, "for .html: a4 or letter").default_value("a4");
  verb.command.add_flag("--worksheet", flags->worksheet, "write a worksheet with an answer key instead of cards");
  verb.command.add_integer("--count", flags->count, {1, kMostOfSheet},
                           fmt::format("for --worksheet: number of questions (default {})", kItemsOfSheet));
  verb.command.add_integer("--seed", flags->seed, {.least = 0},
                           "for --worksheet: the same seed gives the same sheet (default: a new one each time)");
  verb.command.add_flag("--force", flags->force, "replace FILE if it exists");
  verb.command.add_flag("--quiet", flags->quiet, "print only errors");
  verb.run = [flags] { return run(*flags); };
  return verb;
}

}  // namespace posenc::cli
