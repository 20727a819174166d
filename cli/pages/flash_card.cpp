#include "cli/pages/flash_card.h"

#include <fmt/format.h>

#include "cli/pages/html.h"
#include "cli/system/sha1.h"
#include "cli/system/terminal.h"
#include "posenc/content.h"
#include "posenc/error.h"
#include "posenc/json.h"

namespace posenc::cli {
namespace {

// A field of a line, without tabs and line breaks. Content has none, but a tag or deck given by the user may.
std::string one_field(std::string_view text) {
  std::string field;
  for (const char c : text) field += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return field;
}

// Calls plain(text) and code(text) for the parts outside and inside backquotes.
template <class Plain, class Code> void each_part(std::string_view text, const Plain& plain, const Code& code) {
  bool inside = false;
  while (true) {
    const std::size_t end = text.find('`');
    inside ? code(text.substr(0, end)) : plain(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    inside = !inside;
  }
}

}  // namespace

std::string as_html(std::string_view text) {
  std::string result;
  each_part(
      text, [&](std::string_view part) { result += escaped_html(part); },
      [&](std::string_view part) { result += "<code>" + escaped_html(part) + "</code>"; });
  return result;
}

std::string as_terminal_text(std::string_view text, bool colour) {
  std::string result;
  each_part(
      text, [&](std::string_view part) { result += part; },
      [&](std::string_view part) { result += bold(part, colour); });
  return result;
}

std::uint64_t stable_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto digest = sha1(text);
  for (std::size_t i = 0; i < 8; ++i) number = (number << 8U) | digest[i];
  return number;
}

std::string topic_title(std::string_view topic) {
  const Json file = parse_json(content("topics.json"));
  for (const Json& entry : *file.find<Json::Array>("topics")) {
    if (*entry.find<std::string>("name") == topic) return *entry.find<std::string>("title");
  }
  raise(fmt::format("content: no topic '{}'", topic));
}

std::vector<AnkiNote> anki_notes(const std::vector<Card>& cards, std::string_view deck) {
  std::vector<AnkiNote> notes;
  for (const Card& card : cards) {
    AnkiNote note;
    note.guid = fmt::format("{:016x}", stable_number("posenc/" + card.id));
    note.front = as_html(card.front);
    note.back = as_html(card.back);
    if (!card.tex.empty()) note.back += fmt::format("<br><br>\\[{}\\]", escaped_html(card.tex));
    note.back += fmt::format("<br><br><small>{}</small>", escaped_html(card.source));
    note.tags = fmt::format("{}", fmt::join(card.tags, " "));
    note.deck = one_field(fmt::format("{}::{}", deck, topic_title(card.topic)));
    notes.push_back(std::move(note));
  }
  return notes;
}

std::string cards_as_tsv(const std::vector<Card>& cards, std::string_view deck) {
  // The deck is a column, because a deck that only a header names must exist already.
  std::string text =
      "#separator:tab\n"
      "#html:true\n"
      "#notetype:Basic\n"
      "#guid column:1\n"
      "#tags column:4\n"
      "#deck column:5\n";
  for (const AnkiNote& note : anki_notes(cards, deck)) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\n", note.guid, note.front, note.back, note.tags, note.deck);
  }
  return text;
}

}  // namespace posenc::cli
