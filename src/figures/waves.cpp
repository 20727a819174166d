// The table of a scheme as curves (waves) and as colours (heat map).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "figures/axes.h"
#include "figures/kinds.h"
#include "figures/position_table.h"
#include "posenc/error.h"

namespace posenc::figures {
namespace {

constexpr std::int64_t kMostLanes = 8;
constexpr std::size_t kMostFeatures = 16;
constexpr std::int64_t kMostTableRows = std::int64_t{1} << 22;  // of a table that is read as a whole

// The sines of at most kMostLanes pairs, evenly spaced; for tables without waves, any features.
std::vector<std::int64_t> usual_features(const PositionTable& table) {
  std::vector<std::int64_t> sines;
  for (const TableColumn& column : table.columns) {
    if (!is_wave(table) || (column.quarter % 2 == 0 && column.radians != 0)) sines.push_back(column.feature);
  }
  std::vector<std::int64_t> features;
  for (const std::int64_t index : evenly(static_cast<std::int64_t>(sines.size()), kMostLanes)) {
    features.push_back(sines[index]);
  }
  return features;
}

std::string lane_name(const TableColumn& column) {
  if (column.radians == 0) return column.name;
  return fmt::format("{} · λ {}", column.name.substr(0, column.name.find(',')), short_number(wavelength_of(column)));
}

// At most `cells` features, evenly spaced. Only sines if features are omitted, because an irregular mix of sines and
// cosines would show spurious patterns.
std::vector<std::int64_t> shown_features(const PositionTable& table, std::int64_t cells, bool only_sines) {
  if (!only_sines) return evenly(table.form.width, cells);
  std::vector<std::int64_t> sines, features;
  for (const TableColumn& column : table.columns) {
    if (column.quarter % 2 == 0) sines.push_back(column.feature);
  }
  for (const std::int64_t index : evenly(static_cast<std::int64_t>(sines.size()), cells)) {
    features.push_back(sines[index]);
  }
  return features;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  return largest > 0 ? largest : 1;
}

std::int64_t most_positions(const PositionTable& table) {
  return std::holds_alternative<Rows>(table.form.source) ? kMostTableRows : kPositionLimit;
}

}  // namespace

Figure waves_figure(const Request& request) {
  const PlottedScheme& scheme = request.schemes.front();
  const Range wanted = request.zoom.value_or(Range{0, 101});
  const PositionTable table = position_table(scheme, request, wanted.to);
  const Range range = range_of(request, wanted, most_positions(table), "waves");
  if (range.count() < 2) raise("waves: zoom needs at least two positions");
  const std::vector<std::int64_t> features = request.features.empty() ? usual_features(table) : request.features;
  if (features.size() > kMostFeatures) raise(fmt::format("waves: at most {} features at once", kMostFeatures));

  Figure figure;
  figure.kind = "waves";
  figure.title = is_wave(table) ? "Each feature is a wave, from fast to slow" : "Each feature by position";
  figure.subtitle =
      fmt::format("{}{}{}", described(scheme.scheme), is_wave(table) ? "; λ is the wavelength in positions" : "",
                  numerics_note(request.numerics));
  bool has_area = false;
  double largest = 0;
  for (const std::int64_t feature : features) {
    const PositionTable column = picked(table, {feature});
    const Curve curve = curve_of(column, range, request.points);
    Panel panel;
    panel.x = {.least = static_cast<double>(range.from), .most = static_cast<double>(range.to - 1), .shown = false};
    const std::string name = lane_name(column.columns.front());
    largest = std::max({largest, largest_of(curve.y), largest_of(curve.high)});
    if (curve.is_area) {
      has_area = true;
      panel.envelopes.push_back({name, curve.x, curve.y, curve.high, 0});
    } else {
      panel.series.push_back({.name = name, .x = curve.x, .y = curve.y});
      // Mark the positions if they can be told apart.
      if (range.count() * 20 <= request.points) {
        panel.series.push_back({.x = counted(range.count(), static_cast<double>(range.from)),
                                .y = values_from(column, range.from, range.count()),
                                .drawing = Drawing::kDots});
      }
    }
    figure.rows.push_back({{std::move(panel)}});
  }
  for (PanelRow& row : figure.rows) {
    Axis& axis = row.panels.front().y;
    axis = {.least = -largest * 1.12, .most = largest * 1.12};
    axis.ticks = {{-largest, grouped(-largest)}, {largest, grouped(largest)}};
  }
  Axis& last = figure.rows.back().panels.front().x;
  last.shown = true;
  last.label = "position";
  if (has_area) {
    figure.note = "Shaded, minimum to maximum: waves too fast to draw at this zoom without aliasing.";
  }
  figure.height = 150 + 52 * static_cast<int>(features.size());
  return figure;
}

Figure heatmap_figure(const Request& request) {
  const PlottedScheme& scheme = request.schemes.front();
  const Range wanted = request.zoom.value_or(Range{0, 100});
  const PositionTable whole = position_table(scheme, request, wanted.to);
  const Range range = range_of(request, wanted, kPositionLimit, "heatmap");
  const bool only_sines =
      request.features.empty() && is_wave(whole) && !whole.is_rotation && whole.form.width > request.cells_across;
  const std::vector<std::int64_t> features =
      request.features.empty() ? shown_features(whole, request.cells_across, only_sines) : request.features;
  const PositionTable table = picked(whole, features);

  HeatMap map;
  const auto rows = std::min<std::int64_t>(range.count(), request.cells_down);
  const double step = static_cast<double>(range.count()) / static_cast<double>(rows);
  std::vector<std::int64_t> positions;
  for (std::int64_t row = 0; row < rows; ++row) {
    positions.push_back(range.from + static_cast<std::int64_t>(static_cast<double>(row) * step));
    map.rows.push_back(static_cast<double>(range.from) + static_cast<double>(row) * step);
  }
  map.values = values_at(table, positions);
  const double stride =
      features.size() > 1 ? static_cast<double>(whole.form.width) / static_cast<double>(features.size()) : 1;
  bool has_grey = false;
  for (std::size_t column = 0; column < features.size(); ++column) {
    map.columns.push_back(request.features.empty() ? static_cast<double>(column) * stride
                                                   : static_cast<double>(column));
    // Fewer than two samples per turn alias.
    if (step <= 1 || wavelength_of(table.columns[column]) >= 2 * step) continue;
    has_grey = true;
    for (std::size_t cell = column; cell < map.values.size(); cell += features.size()) {
      map.values[cell] = std::numeric_limits<double>::quiet_NaN();
    }
  }
  const auto* const waves = std::get_if<Waves>(&table.form.source);
  map.most = waves != nullptr && waves->scale != 0 ? std::fabs(waves->scale) : largest_of(map.values);
  map.least = -map.most;
  map.label = "value";

  Figure figure;
  figure.kind = "heatmap";
  figure.title = table.is_rotation ? "Cosines and sines of every pair" : "Every feature at every position";
  figure.subtitle = fmt::format("{}{}", described(scheme.scheme), numerics_note(request.numerics));
  Panel panel;
  const double wide = (request.features.empty() ? stride : 1) / 2;
  panel.x = {.label = table.is_rotation ? "pair: cosines, then sines"
                      : only_sines      ? "feature, sines only"
                                        : "feature",
             .least = -wide,
             .most = map.columns.back() + wide};
  if (!request.features.empty()) {
    for (std::size_t i = 0; i < features.size(); ++i) {
      panel.x.ticks.push_back({static_cast<double>(i), fmt::format("{}", features[i])});
    }
  } else if (table.is_rotation) {
    const std::int64_t pairs = whole.form.width / 2;
    for (const std::int64_t half : {std::int64_t{0}, pairs}) {
      for (const std::int64_t quarter : {0, 1, 2, 3}) {
        const std::int64_t pair = pairs * quarter / 4;
        if (quarter > 0 && pairs < 8) continue;
        panel.x.ticks.push_back({static_cast<double>(half + pair), fmt::format("{}", pair)});
      }
    }
  }
  panel.y = {.label = "position",
             .least = map.rows.front() - step / 2,
             .most = map.rows.back() + step / 2,
             .reversed = true};
  panel.heat_map = std::move(map);
  figure.rows = {{{std::move(panel)}}};
  if (has_grey)
    figure.note = "Grey (or ×): fewer than two drawn positions per wavelength; colours there would be misleading.";
  figure.height = 620;
  return figure;
}

}  // namespace posenc::figures
