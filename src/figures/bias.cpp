#include <fmt/format.h>

#include <algorithm>

#include "figures/axes.h"
#include "figures/bias_values.h"
#include "figures/kinds.h"
#include "figures/position_table.h"
#include "posenc/error.h"

namespace posenc::figures {
namespace {

constexpr std::int64_t kMostHeads = 8, kHeadsAcross = 4;
constexpr std::int64_t kMostInLines = 4096;
constexpr double kDeepestColour = -8;
constexpr std::int64_t kMostPositions = std::int64_t{1} << 20;

struct Limits {
  double least, most;
};
// White means that nothing is added, so the scale always includes 0, and is symmetric if values have both signs.
Limits limits_of(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  Limits limits = {std::min(*least, 0.0), std::max(*most, 0.0)};
  if (limits.least < 0 && limits.most > 0) limits.most = std::max(-limits.least, limits.most);
  if (limits.least < 0 && limits.most > 0) limits.least = -limits.most;
  if (limits.least == limits.most) limits.most = 1;
  return limits;
}

// One line per head, against the key's position relative to the query; negative: before it.
Panel lines_panel(const BiasValues& bias, const Range& range, const std::vector<std::int64_t>& heads) {
  Panel panel;
  const std::int64_t reach = range.count() - 1, query = range.from + reach;
  std::vector<std::int64_t> keys;
  for (std::int64_t key = range.from; key <= range.from + 2 * reach; ++key) keys.push_back(key);
  const std::vector<double> values = bias_between(bias, {query}, keys);
  int style = 0;
  for (const std::int64_t head : heads) {
    Series series{.name = bias.is_numbered() ? "" : fmt::format("head {}", head), .style = style++};
    if (bias.is_numbered()) series.drawing = Drawing::kSteps;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      series.x.push_back(static_cast<double>(keys[i] - query));
      series.y.push_back(values[head * keys.size() + i]);
    }
    panel.series.push_back(std::move(series));
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  panel.x = {
      .label = "key − query, in positions", .least = -static_cast<double>(reach), .most = static_cast<double>(reach)};
  panel.y.label = bias.is_numbered() ? bias.row_name : "added to the score";
  fit(panel.y, *least, *most);
  return panel;
}

}  // namespace

Figure bias_figure(const Request& request) {
  const PlottedScheme& scheme = request.schemes.front();
  const Range range = range_of(request, {0, 64}, kMostPositions, "bias");
  if (range.count() < 2) raise("bias: zoom needs at least two positions");
  const BiasValues bias = bias_values(scheme, request, range.to + (request.as_lines ? range.count() : 0));
  Figure figure;
  figure.kind = "bias";
  figure.title = bias.is_numbered()
                     ? fmt::format("The {} of each query and key; what it is worth is trained", bias.row_name)
                     : "What is added to the score of each query and key";
  if (bias.is_of_vectors && !bias.is_numbered()) figure.title += ", for a query of ones";
  figure.subtitle = described(scheme.scheme);
  figure.note = bias.note;
  const std::vector<std::int64_t> heads = heads_shown(request, bias.heads(), kMostHeads, name_of(scheme.scheme));
  if (request.as_lines) {
    if (range.count() > kMostInLines)
      raise(fmt::format("bias: as lines, zoom takes at most {} positions", kMostInLines));
    figure.rows = {{{lines_panel(bias, range, heads)}}};
    return figure;
  }

  const std::int64_t cells =
      std::min({range.count(), std::int64_t{request.cells_across}, std::int64_t{request.cells_down}});
  const double step = static_cast<double>(range.count()) / static_cast<double>(cells);
  std::vector<std::int64_t> positions;
  std::vector<double> centres;
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    positions.push_back(range.from + static_cast<std::int64_t>(static_cast<double>(cell) * step));
    centres.push_back(static_cast<double>(range.from) + static_cast<double>(cell) * step);
  }
  const std::vector<double> values = bias_between(bias, positions, positions);
  Limits limits = limits_of(values);
  std::vector<std::string> notes;
  if (!bias.note.empty()) notes.push_back(bias.note);
  if (!bias.is_numbered() && limits.most == 0 && limits.least < kDeepestColour * 1.25) {
    limits.least = kDeepestColour;
    notes.emplace_back("All below −8 has the darkest colour: e^−8 of a weight is 0.03%.");
  }
  const Axis axis = {.least = centres.front() - step / 2, .most = centres.back() + step / 2};
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (i % kHeadsAcross == 0) figure.rows.emplace_back();
    PanelRow& row = figure.rows.back();
    Panel panel;
    panel.title = bias.is_numbered() ? bias.row_name : fmt::format("head {}", heads[i]);
    panel.x = panel.y = axis;
    panel.y.reversed = true;
    const bool is_last_row = i / kHeadsAcross == (heads.size() - 1) / kHeadsAcross;
    const bool is_last = i % kHeadsAcross == kHeadsAcross - 1 || i + 1 == heads.size();
    if (is_last_row) panel.x.label = "key";
    if (i % kHeadsAcross == 0) panel.y.label = "query";
    panel.y.shown = i % kHeadsAcross == 0;
    const auto plane = static_cast<std::ptrdiff_t>(cells * cells);
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(heads[i]) * plane;
    panel.heat_map = HeatMap{.columns = centres,
                             .rows = centres,
                             .values = {first, first + plane},
                             .least = limits.least,
                             .most = limits.most,
                             .shows_scale = is_last && is_last_row,
                             .label = bias.is_numbered() ? bias.row_name : "bias"};
    panel.equal_units = true;
    row.panels.push_back(std::move(panel));
  }
  if (!request.head && static_cast<std::int64_t>(heads.size()) < bias.heads()) {
    notes.push_back(fmt::format("{} of {} heads.", heads.size(), bias.heads()));
  }
  figure.note = fmt::format("{}", fmt::join(notes, " "));
  figure.height = 150 + (heads.size() == 1 ? 420 : 212 * static_cast<int>(figure.rows.size()));
  return figure;
}

}  // namespace posenc::figures
