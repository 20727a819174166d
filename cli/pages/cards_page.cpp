// Cards on paper: sheets of fronts, each followed by the sheet of its backs, mirrored for printers that flip the
// paper on its long edge.
#include <fmt/format.h>

#include "cli/pages/flash_card.h"
#include "cli/pages/html.h"
#include "posenc/content.h"

namespace posenc::cli {
namespace {

enum class Side : std::uint8_t { kFront, kBack };

std::string card_side(const Card* card, Side side, std::size_t number, std::size_t count) {
  if (card == nullptr) return "<div class=\"card empty\"></div>\n";
  const bool front = side == Side::kFront;
  return fmt::format(
      "<article class=\"card {}\" id=\"{}-{}\"><div class=\"text\">{}</div><div "
      "class=\"foot\"><span>{}</span><span>{} / {}{}</span></div></article>\n",
      front ? "front" : "back", escaped_html(card->id), front ? "front" : "back",
      as_html(front ? card->front : card->back), escaped_html(front ? topic_title(card->topic) : card->source),
      number, count, front ? "" : " · answer");
}

}  // namespace

std::string cards_as_page(const std::vector<Card>& cards, std::string_view deck, int per_page, const Paper& paper) {
  const std::size_t size = per_page;
  const std::size_t columns = per_page == 1 ? 1 : 2;
  std::string sheets;
  const auto sheet = [&](std::size_t first, Side side) {
    sheets += "<section class=\"sheet\">\n";
    for (std::size_t place = 0; place < size; ++place) {
      // The back of the left card is on the right.
      const std::size_t column = place % columns;
      const std::size_t mirrored = side == Side::kFront ? place : place - column + (columns - 1 - column);
      const std::size_t index = first + mirrored;
      sheets += card_side(index < cards.size() ? &cards[index] : nullptr, side, index + 1, cards.size());
    }
    sheets += "</section>\n";
  };
  for (std::size_t first = 0; first < cards.size(); first += size) {
    sheet(first, Side::kFront);
    sheet(first, Side::kBack);
  }
  const std::string sizes =
      fmt::format("@page {{ size: {} portrait; margin: 0; }}\n:root {{ --width: {}; --height: {}; }}", paper.name,
                  paper.width, paper.height);
  const std::string title = fmt::format("{}: {} cards", escaped_html(deck), cards.size());
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<style>{}\n{}</style>\n</head>\n<body class=\"{}\">\n"
      "<header><h1>{}</h1><p>Print on {} paper, on both sides, flipped on the long edge, at 100% and without margins{}. "
      "This note is not printed.</p></header>\n{}</body>\n</html>\n",
      title, sizes, content("pages/cards.css"), per_page == 1 ? "one" : "eight", title, paper.name,
      per_page == 1 ? "" : "; then cut along the lines", sheets);
}

}  // namespace posenc::cli
