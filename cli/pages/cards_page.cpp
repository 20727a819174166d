// Cards on paper: sheets of fronts, each followed by the sheet of its backs, mirrored for printers that flip the
// paper on its long edge.
#include <fmt/format.h>

#include "cli/pages/flash_card.h"
#include "cli/pages/html.h"

namespace posenc::cli {
namespace {

constexpr std::string_view kCardStyle = R"css(
* { box-sizing: border-box; }
body { margin: 0; font-family: "DejaVu Sans", "Helvetica Neue", Arial, sans-serif; color: #111; background: #fff; }
header { max-width: 44rem; margin: 1.5rem auto; padding: 0 1rem; line-height: 1.45; }
.sheet { width: var(--width); height: var(--height); margin: 0 auto; display: grid; break-after: page; overflow: hidden; }
.sheet:last-of-type { break-after: auto; }
.eight .sheet { grid-template: repeat(4, 1fr) / repeat(2, 1fr); }
.card { padding: 6mm 7mm 5mm; display: flex; flex-direction: column; border: 0.2mm dashed #999; overflow: hidden; }
.card.empty { border-color: transparent; }
.text { margin: auto 0; line-height: 1.35; overflow-wrap: anywhere; }
.front .text { font-weight: 600; }
.eight .front .text { font-size: 11.5pt; }
.eight .back .text { font-size: 9.5pt; }
.one .card { border: 0; padding: 25mm; }
.one .text { font-size: 24pt; }
.one .back .text { font-size: 19pt; }
.foot { display: flex; justify-content: space-between; font-size: 7pt; color: #555; }
.one .foot { font-size: 9pt; }
code { font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 0.92em; font-weight: inherit; }
@media screen {
  body { background: #ddd; }
  .sheet { background: #fff; margin-bottom: 8mm; box-shadow: 0 0 2mm #0004; }
}
@media print { header { display: none; } }
)css";

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
      "<style>{}{}</style>\n</head>\n<body class=\"{}\">\n"
      "<header><h1>{}</h1><p>Print on {} paper, on both sides, flipped on the long edge, at 100% and without margins{}. "
      "This note is not printed.</p></header>\n{}</body>\n</html>\n",
      title, sizes, kCardStyle, per_page == 1 ? "one" : "eight", title, paper.name,
      per_page == 1 ? "" : "; then cut along the lines", sheets);
}

}  // namespace posenc::cli
