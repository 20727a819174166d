// The numbers of one position as a bar code, next to a binary counter.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "figures/axes.h"
#include "figures/kinds.h"
#include "figures/position_table.h"

namespace posenc::figures {
namespace {

constexpr std::int64_t kNeighbours = 16;  // rows of both heat maps
constexpr std::int64_t kMostBars = 64;

Axis cells_axis(std::size_t count) { return {.least = -0.5, .most = static_cast<double>(count) - 0.5}; }

// Labels the columns with their feature numbers if some features were omitted.
void name_columns(Axis& axis, const std::vector<std::int64_t>& features) {
  const auto count = static_cast<std::int64_t>(features.size());
  if (features.back() == count - 1) return;  // none were omitted
  for (const std::int64_t index : evenly(count, 8)) {
    axis.ticks.push_back({static_cast<double>(index), fmt::format("{}", features[index])});
  }
}

struct Slice {
  std::int64_t at, first, rows, digits;
};

Panel bars_panel(const PositionTable& table, const std::vector<std::int64_t>& features, const Slice& slice) {
  Panel panel;
  panel.title = fmt::format("Values at position {}", grouped(static_cast<double>(slice.at)));
  const std::vector<double> values = values_at(table, {slice.at});
  double largest = 1;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  panel.series.push_back({.x = counted(values.size()), .y = values, .drawing = Drawing::kBars});
  panel.x = cells_axis(features.size());
  panel.x.shown = false;
  panel.y = {.least = -largest * 1.1, .most = largest * 1.1};
  panel.y.ticks = {{-largest, grouped(-largest)}, {0, "0"}, {largest, grouped(largest)}};
  panel.rules.push_back({.vertical = false, .at = 0});
  panel.width = 2.2;
  return panel;
}

Panel numbers_panel(const PositionTable& table, const std::vector<std::int64_t>& features, const Slice& slice) {
  Panel panel;
  panel.title = "Adjacent positions, features from fast to slow";
  HeatMap map;
  map.columns = counted(features.size());
  map.rows = counted(slice.rows, static_cast<double>(slice.first));
  map.values = values_from(table, slice.first, slice.rows);
  const auto* const waves = std::get_if<Waves>(&table.form.source);
  map.most = waves != nullptr ? std::fabs(waves->scale) : 0;
  for (const double value : map.values) map.most = std::max(map.most, std::fabs(value));
  if (map.most == 0) map.most = 1;
  map.least = -map.most;
  map.label = "value";
  panel.heat_map = std::move(map);
  panel.x = cells_axis(features.size());
  panel.x.label = table.is_rotation ? "column: cosines, then sines" : "feature";
  name_columns(panel.x, features);
  panel.y = {.label = "position",
             .least = static_cast<double>(slice.first) - 0.5,
             .most = static_cast<double>(slice.first + slice.rows) - 0.5,
             .reversed = true};
  panel.width = 2.2;
  return panel;
}

// As numbers are written: the largest digit first.
bool digit_at(std::int64_t number, std::int64_t place, const Slice& slice) {
  return ((number >> (slice.digits - 1 - place)) & 1) != 0;
}

Panel digits_panel(const Slice& slice) {
  Panel panel;
  panel.title = fmt::format("{} in binary", grouped(static_cast<double>(slice.at)));
  Series bars{.drawing = Drawing::kBars};
  for (std::int64_t place = 0; place < slice.digits; ++place) {
    const bool is_set = digit_at(slice.at, place, slice);
    bars.x.push_back(static_cast<double>(place));
    bars.y.push_back(is_set ? 1 : 0);
    panel.words.push_back({static_cast<double>(place), 1.22, is_set ? "1" : "0"});
  }
  panel.series.push_back(std::move(bars));
  panel.x = cells_axis(slice.digits);
  panel.x.shown = false;
  panel.y = {.least = 0, .most = 1.4};
  panel.y.ticks = {{0, "0"}, {1, "1"}};
  return panel;
}

Panel counter_panel(const Slice& slice) {
  Panel panel;
  panel.title = "A binary counter";
  HeatMap map;
  map.columns = counted(slice.digits);
  map.rows = counted(slice.rows, static_cast<double>(slice.first));
  for (std::int64_t row = 0; row < slice.rows; ++row) {
    for (std::int64_t place = 0; place < slice.digits; ++place) {
      map.values.push_back(digit_at(slice.first + row, place, slice) ? 1 : 0);
    }
  }
  map.least = 0;
  map.shows_scale = false;
  panel.heat_map = std::move(map);
  panel.x = cells_axis(slice.digits);
  panel.x.label = "binary digit n, 2ⁿ";
  for (std::int64_t digit = 0; digit<slice.digits; digit += slice.digits> 12 ? 4 : 1) {
    panel.x.ticks.push_back({static_cast<double>(slice.digits - 1 - digit), fmt::format("{}", digit)});
  }
  panel.y = {.least = static_cast<double>(slice.first) - 0.5,
             .most = static_cast<double>(slice.first + slice.rows) - 0.5,
             .reversed = true};
  return panel;
}

}  // namespace

Figure fingerprint_figure(const Request& request) {
  const PlottedScheme& scheme = request.schemes.front();
  Slice slice{.at = request.at.value_or(37), .first = 0, .rows = kNeighbours, .digits = 6};
  slice.first = std::clamp<std::int64_t>(slice.at - kNeighbours / 2, 0, kPositionLimit - kNeighbours);
  const std::int64_t last = slice.first + slice.rows - 1;
  slice.digits = std::max(slice.digits, static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(last))));
  const PositionTable whole = position_table(scheme, request, last + 1);
  const std::vector<std::int64_t> features =
      request.features.empty() ? evenly(whole.form.width, kMostBars) : request.features;
  const PositionTable table = picked(whole, features);

  Figure figure;
  figure.kind = "fingerprint";
  figure.title =
      fmt::format("Position {}: a unique pattern of fast and slow features", grouped(static_cast<double>(slice.at)));
  figure.subtitle = fmt::format("{}{}", described(scheme.scheme), numerics_note(request.numerics));
  Panel numbers = numbers_panel(table, features, slice), counter = counter_panel(slice);
  const auto at = static_cast<double>(slice.at);
  for (Panel* const panel : {&numbers, &counter}) {
    panel->frames.push_back({panel->x.least, panel->x.most, at - 0.5, at + 0.5});
  }
  figure.rows = {{{bars_panel(table, features, slice), digits_panel(slice)}, 1},
                 {{std::move(numbers), std::move(counter)}, 2.1}};
  figure.note = "A filled cell of the binary counter is a 1.";
  figure.height = 600;
  return figure;
}

}  // namespace posenc::figures
