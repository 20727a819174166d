#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <set>
#include <string>
#include <vector>

#include "cli/arrays/numbers.h"
#include "cli/pages/flash_card.h"
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
  std::string output, format, tag, deck = "posenc", per_page;
  bool force = false, quiet = false;
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

// Packages say when they were made. Builds that must be the same twice set SOURCE_DATE_EPOCH.
std::int64_t seconds_now() {
  const char* const fixed = std::getenv("SOURCE_DATE_EPOCH");
  if (fixed == nullptr || *fixed == '\0') return static_cast<std::int64_t>(std::time(nullptr));
  const std::int64_t seconds = integer_from(fixed, "SOURCE_DATE_EPOCH");
  constexpr std::int64_t kYear9999 = 253'402'300'799;
  if (seconds < 0 || seconds > kYear9999) refuse(fmt::format("SOURCE_DATE_EPOCH: {} is no time", seconds));
  return seconds;
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
  const std::vector<Card> chosen = chosen_cards(flags.tag);
  if (flags.output == "-" && format == "apkg" && isatty(STDOUT_FILENO) == 1) {
    refuse("cards: .apkg is binary and standard output is a terminal; redirect it");
  }
  const auto bytes = [&] {
    if (format == "tsv") return cards_as_tsv(chosen, flags.deck);
    if (format == "html") return cards_as_page(chosen, flags.deck, per_page);
    return cards_as_apkg(chosen, flags.deck, seconds_now());
  };
  if (flags.output == "-") {
    print(bytes());
    return kDone;
  }
  OutputFile file(output_target(flags.output, flags.force));
  file.write(bytes());
  file.publish();
  if (!flags.quiet) tell(fmt::format("wrote {}: {} cards", flags.output, chosen.size()));
  return kDone;
}

}  // namespace

Verb cards_verb(Command program) {
  Verb verb;
  verb.name = "cards";
  verb.summary = "export the flash cards for Anki, or to print";
  verb.usage = "-o FILE.tsv|.apkg|.html [--tag TAG]";
  verb.details =
      "A .tsv file is text for Anki's File > Import, an .apkg file an Anki package to double-click, an .html file a "
      "page to print double-sided. Cards keep their identity: importing a newer file updates existing cards and "
      "keeps their progress. Every number on a card is computed.";
  verb.examples =
      "posenc cards -o posenc.apkg\n"
      "posenc cards -o posenc.tsv --deck Transformers\n"
      "posenc cards -o rope.html --tag rope --per-page 1";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<CardsFlags>();
  verb.command.add_option("-o,--output", flags->output, "output file; - for standard output").type_name("FILE");
  verb.command.add_choice("--format", flags->format, {"tsv", "apkg", "html"},
                          "tsv, apkg or html (default: from the name of FILE)");
  verb.command.add_option("--tag", flags->tag, "only cards with this tag: rope, alibi, scaling …").type_name("TAG");
  verb.command.add_option("--deck", flags->deck, "name of the deck").type_name("NAME").default_value(flags->deck);
  verb.command.add_choice("--per-page", flags->per_page, {"1", "8"}, "of .html: 1 or 8 cards to a sheet")
      .type_name("N")
      .default_value("8");
  verb.command.add_flag("--force", flags->force, "replace FILE if it exists");
  verb.command.add_flag("--quiet", flags->quiet, "print only errors");
  verb.run = [flags, verb] {
    refuse_leftovers(verb.command);
    return run(*flags);
  };
  return verb;
}

}  // namespace posenc::cli
