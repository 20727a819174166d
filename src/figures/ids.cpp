// The positions of a prompt with text, images and videos, one series per axis.

#include <fmt/format.h>

#include <algorithm>

#include "figures/axes.h"
#include "figures/kinds.h"
#include "figures/position_table.h"
#include "posenc/error.h"
#include "posenc/mrope.h"

namespace posenc::figures {
namespace {

constexpr std::int64_t kMostTokens = 1 << 16;
constexpr std::string_view kUsualPrompt = "text:6 image:8x12 text:5 video:4x8x8@1 text:6";

std::string_view piece_name(const MropePiece& piece) {
  return piece.text > 0 ? "text" : piece.frames == 1 ? "image" : "video";
}

}  // namespace

Figure ids_figure(const Request& request) {
  const PlottedScheme& scheme = request.schemes.front();
  const auto* const rope = std::get_if<Rope>(&scheme.scheme);
  if (rope == nullptr || rope->sections.size() != 3) {
    raise(fmt::format("ids: works with rope of three sections (time, height, width), not with {}",
                      name_of(scheme.scheme)));
  }
  const MropeFamily& family = mrope_family("qwen2.5-vl");
  const std::string prompt = request.spec.empty() ? std::string(kUsualPrompt) : request.spec;
  const std::vector<MropePiece> pieces = mrope_pieces(prompt, family);
  const MropeOptions options{.advance = family.advance, .rate = family.rate};
  const MropePositions made = mrope_positions(pieces, options);
  if (made.tokens < 2 || made.tokens > kMostTokens) {
    raise(fmt::format("ids: the prompt must have 2 to {} tokens but has {}", kMostTokens, made.tokens));
  }
  Panel panel;
  double most = 0;
  constexpr std::string_view kAxes[] = {"time", "height", "width"};
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    Series series{.name = std::string(kAxes[axis]), .style = static_cast<int>(axis), .drawing = Drawing::kDots};
    for (std::int64_t token = 0; token < made.tokens; ++token) {
      series.x.push_back(static_cast<double>(token));
      series.y.push_back(static_cast<double>(made.ids[axis * made.tokens + token]));
      most = std::max(most, series.y.back());
    }
    panel.series.push_back(std::move(series));
  }
  std::int64_t begin = 0;
  for (const MropePiece& piece : pieces) {
    const std::int64_t tokens = mrope_positions(std::span(&piece, 1), options).tokens;
    panel.bands.push_back({static_cast<double>(begin) - 0.5, static_cast<double>(begin + tokens) - 0.5,
                           std::string(piece_name(piece))});
    begin += tokens;
  }
  // Adjacent bands would merge, so every other piece is shaded.
  std::vector<Band> shaded;
  for (std::size_t i = 1; i < panel.bands.size(); i += 2) shaded.push_back(panel.bands[i]);
  panel.bands = std::move(shaded);
  panel.x = {.label = "token", .least = -0.5, .most = static_cast<double>(made.tokens) - 0.5};
  panel.y.label = "position";
  fit(panel.y, 0, most);
  Figure figure;
  figure.kind = "ids";
  figure.title = "Positions of text, images and videos on three axes";
  figure.subtitle = fmt::format("{}, as {} counts: {}", described(scheme.scheme), family.name, prompt);
  figure.note = fmt::format("The first token that the model writes is at {} on all axes.", made.next);
  figure.rows = {{{std::move(panel)}}};
  return figure;
}

}  // namespace posenc::figures
