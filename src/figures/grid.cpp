// Values over the rows and columns of an image: features of a table, or the cosines of a rotation's pairs.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "figures/axes.h"
#include "figures/kinds.h"
#include "figures/position_table.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc::figures {
namespace {

constexpr std::size_t kMapsAcross = 4;
constexpr std::int64_t kMostMaps = 8, kUsualSide = 16, kMostGridCells = 1 << 16;

// [rows, columns] of one feature or pair.
struct Map {
  std::string title;
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;
};

Panel panel_of(const Map& map, double largest, bool shows_scale) {
  Panel panel;
  panel.title = map.title;
  HeatMap cells{
      .values = map.values, .least = -largest, .most = largest, .shows_scale = shows_scale, .label = "value"};
  cells.rows = counted(map.rows);
  cells.columns = counted(map.columns);
  panel.x = {.label = "column", .least = -0.5, .most = static_cast<double>(map.columns) - 0.5};
  panel.y = {.label = "row", .least = -0.5, .most = static_cast<double>(map.rows) - 0.5, .reversed = true};
  panel.heat_map = std::move(cells);
  panel.equal_units = true;
  return panel;
}

// [tokens, width] for an addition, or the cosines [tokens, pairs] for a rotation.
std::vector<double> values_over(const Form& form, const Positions& positions, std::int64_t tokens,
                                std::int64_t& width) {
  if (const auto* const addition = std::get_if<Addition>(&form)) {
    width = addition->width;
    std::vector<double> values(tokens * width);
    tabulate(view(values.data(), {tokens, width}), positions, *addition);
    return values;
  }
  const Rotation rotation = head_of(std::get<Rotation>(form), 0);
  width = pairs_of(rotation);
  std::vector<double> cosines(tokens * width), sines(cosines.size());
  tabulate(view(cosines.data(), {tokens, width}), view(sines.data(), {tokens, width}), positions, rotation);
  return cosines;
}

std::vector<std::int64_t> chosen(const Request& request, std::int64_t width) {
  for (const std::int64_t feature : request.features) {
    if (feature < 0 || feature >= width)
      raise(fmt::format("grid: feature {} is outside 0 to {}", feature, width - 1));
  }
  if (static_cast<std::int64_t>(request.features.size()) > kMostMaps) {
    raise(fmt::format("grid: at most {} features at once", kMostMaps));
  }
  return request.features.empty() ? evenly(width, kMostMaps) : request.features;
}

Map map_of(const std::vector<double>& values, std::int64_t first, std::int64_t width, std::int64_t feature,
           const std::vector<std::int64_t>& extents) {
  Map map{"", extents[0], extents[1], {}};
  for (std::int64_t cell = 0; cell < extents[0] * extents[1]; ++cell) {
    map.values.push_back(values[(first + cell) * width + feature]);
  }
  return map;
}

// A smooth example in place of a trained table: feature f is a product of a cosine of the row and one of the column.
std::vector<double> example_table(const Resized& scheme) {
  const TrainedTable shape = scheme.trained_table();
  std::vector<double> table(count_of(shape_of(shape)));
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / scheme.width - scheme.prefix;
    const auto feature = static_cast<double>(static_cast<std::int64_t>(i) % scheme.width % 5 + 1);
    const auto share = [](std::int64_t cell, std::int64_t cells) {
      return (static_cast<double>(cell) + 0.5) / static_cast<double>(cells);
    };
    if (row < 0) continue;
    table[i] =
        std::cos(std::numbers::pi * feature * share(row / scheme.trained_grid[1], scheme.trained_grid[0])) *
        std::cos(std::numbers::pi * (feature + 1) * share(row % scheme.trained_grid[1], scheme.trained_grid[1]));
  }
  return table;
}

double largest_value(const std::vector<Map>& maps) {
  double largest = 0;
  for (const Map& map : maps) {
    for (const double value : map.values) largest = std::max(largest, std::fabs(value));
  }
  return largest > 0 ? largest : 1;
}

// The map of each feature before and after resizing.
std::vector<Map> resized_maps(const Request& request, const Resized& scheme, std::string& note) {
  const Extents shape = shape_of(scheme.trained_table());
  std::vector<double> example;
  ConstTensorView weights = request.schemes.front().weights;
  if (weights.data == nullptr) {
    if (count_of(shape) < 0) prepare(scheme);  // throws: the fields are invalid
    if (count_of(shape) > (std::int64_t{1} << 26))
      raise("grid: the table is too large for an example; give --weights");
    example = example_table(scheme);
    weights = view(static_cast<const double*>(example.data()), shape);
    note = "An example instead of a trained table.";
  }
  const Form resized = prepare(scheme, {.weights = weights});
  const Form trained = Addition{scheme.width, Rows{weights, 0}};
  std::int64_t width = 0;
  const std::int64_t rows = scheme.prefix + scheme.new_grid[0] * scheme.new_grid[1];
  const std::vector<double> before = values_over(trained, {}, shape[0], width),
                            after = values_over(resized, {}, rows, width);
  std::vector<std::int64_t> features = chosen(request, width);
  if (request.features.empty()) features.resize(std::min<std::size_t>(features.size(), 2));
  std::vector<Map> maps;
  for (const std::int64_t feature : features) {
    maps.push_back(map_of(before, scheme.prefix, width, feature, scheme.trained_grid));
    maps.back().title = fmt::format("feature {}, trained", feature);
    maps.push_back(map_of(after, scheme.prefix, width, feature, scheme.new_grid));
    maps.back().title = fmt::format("feature {}, resized", feature);
  }
  return maps;
}

// Rows and columns are the last two axes; a preceding axis, such as time, is 0.
std::vector<Map> position_maps(const Request& request, const Scheme& scheme) {
  const auto* const patches = std::get_if<PatchRope>(&scheme);
  const Form form = prepare(scheme, {.length = request.length, .weights = request.schemes.front().weights});
  const int axes = position_axes_of(form);
  const bool is_drawn =
      std::holds_alternative<Rotation>(form) || (waves_of(form) != nullptr && std::holds_alternative<Addition>(form));
  if (!is_drawn || axes < 2 || axes > 3) {
    raise(fmt::format("grid: works with rotations and waves of 2 or 3 axes and with resized, not with {} ({})",
                      name_of(scheme), axes == 1 ? "one axis" : fmt::format("{} axes", axes)));
  }
  std::vector<std::int64_t> extents = {kUsualSide, kUsualSide};
  if (patches != nullptr) extents = {patches->patches.end() - 2, patches->patches.end()};
  if (extents[0] * extents[1] > kMostGridCells) raise(fmt::format("grid: more than {} cells", kMostGridCells));
  const std::int64_t cells = extents[0] * extents[1];
  std::vector<std::int64_t> ids(axes == 3 ? cells : 0, 0);
  const std::vector<std::int64_t> plane = patches != nullptr ? centred_positions(extents) : grid_positions(extents);
  ids.insert(ids.end(), plane.begin(), plane.end());
  std::int64_t width = 0;
  const std::vector<double> values = values_over(form, {.ids = ids, .axes = axes}, cells, width);
  std::vector<Map> maps;
  for (const std::int64_t feature : chosen(request, width)) {
    maps.push_back(map_of(values, 0, width, feature, extents));
    maps.back().title = fmt::format("{} {}", std::holds_alternative<Rotation>(form) ? "pair" : "feature", feature);
  }
  return maps;
}

}  // namespace

Figure grid_figure(const Request& request) {
  const Scheme& scheme = request.schemes.front().scheme;
  const auto* const resized = std::get_if<Resized>(&scheme);
  Figure figure;
  figure.kind = "grid";
  const std::vector<Map> maps =
      resized != nullptr ? resized_maps(request, *resized, figure.note) : position_maps(request, scheme);
  figure.title = resized != nullptr ? "A trained table, and the same table for another grid of patches"
                                    : "Cosines of pairs, or features, by row and column of an image";
  figure.subtitle = described(scheme);
  const double largest = largest_value(maps);
  const std::size_t across = resized != nullptr ? 2 : kMapsAcross;  // before and after, side by side
  for (std::size_t i = 0; i < maps.size(); ++i) {
    if (i % across == 0) figure.rows.emplace_back();
    const bool is_last = i + 1 == maps.size();
    figure.rows.back().panels.push_back(panel_of(maps[i], largest, is_last));
  }
  figure.height = 150 + 240 * static_cast<int>(figure.rows.size());
  return figure;
}

}  // namespace posenc::figures
