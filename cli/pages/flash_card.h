#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/pages/paper.h"
#include "posenc/question.h"

namespace posenc::cli {

/// Content as HTML: escaped, `code` in <code>.
std::string as_html(std::string_view text);
/// Content for a terminal: backquotes are removed, or become bold.
std::string as_terminal_text(std::string_view text, bool colour);

/// A card as Anki stores it. The guid depends only on the card's id, so that importing a newer deck updates notes
/// instead of duplicating them; it must never change.
struct AnkiNote {
  std::string guid;
  std::string front, back;  // HTML; the formula as MathJax
  std::string tags;         // separated by spaces
  std::string deck;         // "posenc::Rotary position"
};
std::vector<AnkiNote> anki_notes(const std::vector<Card>& cards, std::string_view deck);

/// The first 64 bits of the SHA-1 of a text, for ids that never change.
std::uint64_t stable_number(std::string_view text);

/// The title of a topic, "Rotary position". Throws: Error for an unknown one.
std::string topic_title(std::string_view topic);

/// Tab-separated text with the headers that Anki's importer reads, one note per line.
std::string cards_as_tsv(const std::vector<Card>& cards, std::string_view deck);
/// An Anki package: a zip archive of a SQLite collection. `now` is in seconds since 1970; of two notes, Anki keeps
/// the newer.
std::string cards_as_apkg(const std::vector<Card>& cards, std::string_view deck, std::int64_t now);
/// A page to print on both sides and cut: 1 or 8 cards per sheet.
std::string cards_as_page(const std::vector<Card>& cards, std::string_view deck, int per_page, const Paper& paper);

}  // namespace posenc::cli
