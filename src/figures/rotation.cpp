// The matrix that shifts every position by k, and its residual at one position.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "figures/axes.h"
#include "figures/kinds.h"
#include "figures/position_table.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc::figures {
namespace {

constexpr std::int64_t kWidestShift = 128;

// R with P(p + k) = R · P(p), row-major, and the vectors of both positions.
struct ShiftMatrix {
  std::int64_t width = 0;
  std::vector<double> cells = {}, before = {}, after = {};
  double at(std::int64_t row, std::int64_t column) const { return cells[row * width + column]; }
};

// Column c is sin(θ + q_c·π/2). Shifted by δ, it is cos δ times itself plus sin δ times the column a quarter turn
// ahead.
ShiftMatrix shift_of_waves(const PositionTable& table, std::int64_t at, std::int64_t shift) {
  const auto& waves = std::get<Waves>(table.form.source);
  const std::vector<double> moved = values_at(table, {std::abs(shift)});
  std::vector<double> sines(waves.waves.size()), cosines(waves.waves.size());
  for (std::size_t c = 0; c < moved.size(); ++c) {
    const std::size_t wave = waves.columns[c].wave;
    const std::uint8_t quarter = waves.columns[c].quarter;
    const double value = moved[c] / waves.scale * (quarter % 4 < 2 ? 1 : -1);
    if (quarter % 2 == 1) {
      cosines[wave] = value;
    } else {
      sines[wave] = shift < 0 ? -value : value;
    }
  }
  ShiftMatrix result{.width = table.form.width};
  for (const WaveColumn& row : waves.columns) {
    for (const WaveColumn& column : waves.columns) {
      const std::size_t wave = row.wave;
      const int ahead = (column.quarter - row.quarter + 4) % 4;
      double cell = 0;
      if (column.wave == row.wave && ahead == 0) cell = cosines[wave];
      if (column.wave == row.wave && ahead == 1) cell = sines[wave];
      if (column.wave == row.wave && ahead == 3) cell = -sines[wave];
      result.cells.push_back(cell);
    }
  }
  result.before = values_at(table, {at});
  result.after = values_at(table, {at + shift});
  return result;
}

// Rotates unit vectors to get the columns of R, and a vector of ones to each of the two positions.
ShiftMatrix shift_of_pairs(Rotation rotation, std::int64_t at, std::int64_t shift) {
  rotation.first_dim = 0;
  const std::int64_t width = 2 * pairs_of(rotation);
  const auto rotated = [&](std::vector<double> rows, std::int64_t position, const Rotation& by) {
    const std::vector<std::int64_t> ids(rows.size() / width, position);
    rotate(view(rows.data(), {static_cast<std::int64_t>(ids.size()), width}), {.ids = ids}, by);
    return rows;
  };
  const std::vector<double> ones(width, 1.0);
  ShiftMatrix result{
      .width = width, .before = rotated(ones, at, rotation), .after = rotated(ones, at + shift, rotation)};
  std::vector<double> unit(width * width, 0.0);
  for (std::int64_t i = 0; i < width; ++i) unit[i * width + i] = 1;
  rotation.magnitude = 1;
  if (shift < 0) rotation.sign = -rotation.sign;
  const std::vector<double> moved = rotated(unit, std::abs(shift), rotation);
  result.cells.resize(unit.size());
  for (std::int64_t row = 0; row < width; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      result.cells[row * width + column] = moved[column * width + row];
    }
  }
  return result;
}

double residual_of(const ShiftMatrix& matrix) {
  double largest = 0;
  for (std::int64_t row = 0; row < matrix.width; ++row) {
    double sum = 0;
    for (std::int64_t column = 0; column < matrix.width; ++column) {
      sum += matrix.at(row, column) * matrix.before[column];
    }
    largest = std::max(largest, std::fabs(sum - matrix.after[row]));
  }
  return largest;
}

}  // namespace

Figure rotation_figure(const Request& request) {
  const PlottedScheme& scheme = request.schemes.front();
  const std::int64_t at = request.at.value_or(10), shift = request.shift.value_or(1);
  if (at + shift < 0 || at + shift >= kPositionLimit)
    raise(fmt::format("rotation: shift {} goes beyond the valid positions", shift));
  const std::int64_t length = std::max(at, at + shift) + 1;
  const PositionTable table = position_table(scheme, request, length);  // throws if there are none
  if (!is_wave(table)) raise(fmt::format("{}: no rotation moves its vectors", name_of(scheme.scheme)));
  if (std::get<Waves>(table.form.source).scale == 0) raise("rotation: scale 0 leaves nothing to draw");
  if (table.form.width > kWidestShift) {
    raise(fmt::format("rotation: shows at most {} features, not {}", kWidestShift, table.form.width));
  }
  const Form form = form_of(scheme, request, length);
  const auto* const rotation = std::get_if<Rotation>(&form);
  const ShiftMatrix matrix =
      rotation != nullptr ? shift_of_pairs(*rotation, at, shift) : shift_of_waves(table, at, shift);

  HeatMap map{
      .columns = counted(matrix.width), .rows = counted(matrix.width), .values = matrix.cells, .label = "value"};
  Panel panel;
  const double end = static_cast<double>(matrix.width) - 0.5;
  panel.x = {.label = "feature before the shift", .least = -0.5, .most = end};
  panel.y = {.label = "feature after the shift", .least = -0.5, .most = end, .reversed = true};
  panel.heat_map = std::move(map);
  panel.equal_units = true;

  Figure figure;
  figure.kind = "rotation";
  figure.title = fmt::format("The matrix R that moves every position by {}", grouped(static_cast<double>(shift)));
  figure.subtitle =
      fmt::format("{}{}; one rotation per pair", described(scheme.scheme), numerics_note(request.numerics));
  figure.note = fmt::format(
      "R does not depend on the position. At position {}, R times the vector differs from the "
      "vector of position {} by at most {:.2g}.",
      grouped(static_cast<double>(at)), grouped(static_cast<double>(at + shift)), residual_of(matrix));
  figure.rows = {{{std::move(panel)}}};
  figure.width = 700;
  figure.height = 640;
  return figure;
}

}  // namespace posenc::figures
