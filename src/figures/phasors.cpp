// The pairs of a position as clock hands: at one position, before and after a shift, or of a query and a key.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "figures/axes.h"
#include "figures/kinds.h"
#include "figures/position_table.h"
#include "posenc/error.h"

namespace posenc::figures {
namespace {

constexpr std::int64_t kMostDials = 12;

struct Dial {
  std::string name = {};
  double radians = 0, cosine = 0, sine = 0;
};

std::vector<Dial> dials_at(const PositionTable& table, std::int64_t position) {
  const auto& waves = std::get<Waves>(table.form.source);
  const std::vector<double> values = values_at(table, {position});
  std::vector<Dial> dials(waves.waves.size());
  for (std::size_t column = 0; column < values.size(); ++column) {
    Dial& dial = dials[waves.columns[column].wave];
    const bool is_cosine = waves.columns[column].quarter % 2 == 1;
    dial.radians = table.columns[column].radians;
    (is_cosine ? dial.cosine : dial.sine) = values[column] / waves.scale;
  }
  for (std::size_t pair = 0; pair < dials.size(); ++pair) {
    dials[pair].name = fmt::format(
        "pair {} · λ {}", pair,
        dials[pair].radians == 0 ? "∞" : short_number(2 * std::numbers::pi / std::fabs(dials[pair].radians)));
  }
  return dials;
}

// Adds the shorter arc from one hand to the other, without its start, by repeated halving.
void add_arc(Series& series, double x, double y, const Dial& from, const Dial& to, int halvings) {
  constexpr double kRadius = 0.45;
  if (halvings == 0) {
    series.x.push_back(x + kRadius * to.cosine);
    series.y.push_back(y + kRadius * to.sine);
    return;
  }
  Dial middle{.cosine = from.cosine + to.cosine, .sine = from.sine + to.sine};
  const double length = std::sqrt(middle.cosine * middle.cosine + middle.sine * middle.sine);
  middle = length < 1e-9 ? Dial{.cosine = -from.sine, .sine = from.cosine}
                         : Dial{.cosine = middle.cosine / length, .sine = middle.sine / length};
  add_arc(series, x, y, from, middle, halvings - 1);
  add_arc(series, x, y, middle, to, halvings - 1);
}

double cosine_between(const Dial& one, const Dial& other) {
  return one.cosine * other.cosine + one.sine * other.sine;
}

std::string signed_number(double value) {
  const std::string digits = fmt::format("{:.2f}", std::fabs(value));
  return value < 0 && digits != "0.00" ? "−" + digits : digits;
}

// The query and the key point right in every pair before rotation, so their score is a mean of cosines.
std::string score_note(const std::vector<Dial>& query, const std::vector<Dial>& key, std::int64_t distance) {
  double sum = 0;
  for (std::size_t pair = 0; pair < query.size(); ++pair) sum += cosine_between(query[pair], key[pair]);
  return fmt::format(
      "The score of a query and a key that are alike is the mean cosine of the angles between their hands, {:.6g}; it "
      "depends only on the distance {}.",
      sum / static_cast<double>(query.size()), grouped(static_cast<double>(distance)));
}

// Hands of slow pairs coincide in the drawing: by how much they differ is said.
std::string turn_note(const std::vector<Dial>& hands, std::int64_t shift) {
  constexpr double kVisible = 0.05;
  const double turn = std::fabs(static_cast<double>(shift) * hands.back().radians);
  return fmt::format("In {} positions pair 0 rotates by {:.3g} radians, pair {} by {:.3g}{}.",
                     grouped(std::fabs(static_cast<double>(shift))),
                     std::fabs(static_cast<double>(shift) * hands.front().radians), hands.size() - 1, turn,
                     turn < kVisible ? ", which is too little to see" : "");
}

}  // namespace

Figure phasors_figure(const Request& request) {
  constexpr double kAcross = 2.9, kDown = 3.1;
  const PlottedScheme& scheme = request.schemes.front();
  const std::int64_t at = request.at.value_or(10);
  if (request.key && request.shift) raise("phasors: give a shift or a key, not both");
  const std::int64_t shift = request.key ? *request.key - at : request.shift.value_or(0);
  if (at + shift < 0 || at + shift >= kPositionLimit)
    raise(fmt::format("phasors: shift {} goes beyond the valid positions", shift));
  const PositionTable table = position_table(scheme, request, std::max(at, at + shift) + 1);
  if (!is_wave(table)) raise(fmt::format("{} has no rotating pairs", name_of(scheme.scheme)));
  if (std::get<Waves>(table.form.source).scale == 0) raise("phasors: scale 0 leaves nothing to draw");
  if (request.key && !table.is_rotation) {
    raise(fmt::format("phasors: key works with rotations of queries and keys, not with {}", name_of(scheme.scheme)));
  }
  const bool has_second = shift != 0 || request.key;

  const std::vector<Dial> hands = dials_at(table, at), later = dials_at(table, at + shift);
  const std::vector<std::int64_t> shown = evenly(static_cast<std::int64_t>(hands.size()), kMostDials);
  const auto count = static_cast<int>(shown.size());
  const int across = count <= 4 ? count : (count + 1) / 2 <= 4 ? (count + 1) / 2 : 4;

  Panel panel;
  panel.equal_units = true;
  const auto named = [&](std::string_view role, std::int64_t position) {
    return fmt::format("{}position {}", request.key ? role : "", grouped(static_cast<double>(position)));
  };
  Series circles{.style = -1}, first{.name = named("query at ", at)};
  Series second{.name = named("key at ", at + shift), .style = 1}, tips{.drawing = Drawing::kDots};
  Series arcs{.name = "angle between them", .style = 2};
  const auto hand = [](Series& series, double x, double y, const Dial& dial) {
    series.x.insert(series.x.end(), {x, x + dial.cosine, x});
    series.y.insert(series.y.end(), {y, y + dial.sine, std::nan("")});
  };
  for (int i = 0; i < count; ++i) {
    const int column = i % across, row = i / across;
    const double x = kAcross * column, y = -kDown * row;
    const std::size_t pair = shown[i];
    constexpr int kCorners = 72;
    for (int corner = 0; corner <= kCorners; ++corner) {
      const double angle = 2 * std::numbers::pi * corner / kCorners;
      circles.x.push_back(x + std::cos(angle));
      circles.y.push_back(y + std::sin(angle));
    }
    circles.x.push_back(x);
    circles.y.push_back(std::nan(""));
    hand(first, x, y, hands[pair]);
    tips.x.push_back(x + hands[pair].cosine);
    tips.y.push_back(y + hands[pair].sine);
    if (has_second) {
      hand(second, x, y, later[pair]);
      add_arc(arcs, x, y, later[pair], later[pair], 0);
      add_arc(arcs, x, y, later[pair], hands[pair], 4);
      arcs.x.push_back(x);
      arcs.y.push_back(std::nan(""));
    }
    std::string words = hands[pair].name;
    if (request.key) {
      words = fmt::format("pair {} · cos {}", pair, signed_number(cosine_between(hands[pair], later[pair])));
    }
    panel.words.push_back({x, y - 1.3, std::move(words)});
  }
  panel.x = {.least = -1.3, .most = kAcross * (across - 1) + 1.3, .shown = false};
  const int down = (count + across - 1) / across;
  panel.y = {.least = -kDown * (down - 1) - 1.6, .most = 1.15, .shown = false};
  panel.series = {std::move(circles)};
  if (has_second) {
    panel.series.push_back(std::move(arcs));
    panel.series.push_back(std::move(second));
  }
  panel.series.push_back(std::move(first));
  panel.series.push_back(std::move(tips));

  Figure figure;
  figure.kind = "phasors";
  figure.title = request.key ? "Query and key rotate; their score depends on the angles between them"
                             : "Each pair rotates at its own speed, the first fastest";
  figure.subtitle =
      fmt::format("{}; angle p·ω, counter-clockwise from the right{}{}{}", described(scheme.scheme),
                  request.key ? "" : "; λ: wavelength in positions", numerics_note(request.numerics),
                  shift != 0 && !request.key
                      ? fmt::format(". Solid to dashed: {} positions, the same rotation at every position", shift)
                      : "");
  if (request.key) figure.note = score_note(hands, later, at - *request.key);
  if (shift != 0 && !request.key) figure.note = turn_note(hands, shift);
  figure.rows = {{{std::move(panel)}}};
  figure.height = 110 + 210 * down;
  return figure;
}

}  // namespace posenc::figures
