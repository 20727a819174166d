#include "figures/position_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/json.h"

namespace posenc::figures {
namespace {

constexpr double kFewestPoints = 128, kPointsPerTurn = 48;  // of a smooth line
constexpr std::int64_t kMostMixedNumbers = std::int64_t{1} << 26;
constexpr double kPointsPerWave = 16;  // with fewer, a line does not show the wave

std::string_view wave_name(std::uint8_t quarter) { return quarter % 2 == 1 ? "cosine" : "sine"; }

std::vector<TableColumn> columns_of_form(const Addition& form, bool is_rotation) {
  std::vector<TableColumn> columns;
  const auto* const waves = std::get_if<Waves>(&form.source);
  for (std::int64_t feature = 0; feature < form.width; ++feature) {
    if (waves == nullptr) {
      const std::int64_t pairs = form.width / 2;
      columns.push_back({is_rotation ? fmt::format("pair {}, {}", feature % pairs, wave_name(feature < pairs ? 1 : 0))
                                     : fmt::format("feature {}", feature),
                         feature});
      continue;
    }
    const WaveColumn& column = waves->columns[feature];
    const std::string name = is_rotation ? fmt::format("pair {}", column.wave) : fmt::format("feature {}", feature);
    const Frequency& frequency = waves->waves[column.wave].frequency;
    columns.push_back(
        {fmt::format("{}, {}", name, wave_name(column.quarter)), feature, radians_of(frequency), column.quarter});
  }
  return columns;
}

// Cosines and sines of a mixture: sums of waves, so not waves themselves.
Rows mixed_rows(const Rotation& rotation, std::int64_t length) {
  const std::int64_t pairs = pairs_of(rotation), width = 2 * pairs;
  if (length > kMostMixedNumbers / width) {
    raise(fmt::format("a mixture of {} pairs is too much for a figure of {} positions", pairs, length));
  }
  std::vector<double> values(length * width);
  const Extents shape{length, pairs}, strides{width, 1};
  tabulate({values.data(), DataType::kF64, shape, strides}, {values.data() + pairs, DataType::kF64, shape, strides},
           {}, rotation);
  Rows rows;
  rows.owner = shared(std::move(values));
  rows.table = {static_cast<const double*>(data_of(rows.owner)), DataType::kF64, {length, width}};
  return rows;
}

// Unused waves cost time. A chain of float32 products computes each wave from the one before, so it is kept whole.
void drop_unused(Waves& waves) {
  if (waves.float32_angles.chain != 0) return;
  const Waves all = waves;
  const Float32Angles& angles = all.float32_angles;
  waves.waves.clear();
  waves.float32_angles.factors.clear();
  waves.float32_angles.blends.clear();
  for (WaveColumn& column : waves.columns) {
    const std::size_t wave = column.wave;
    column.wave = static_cast<std::int32_t>(waves.waves.size());
    waves.waves.push_back(all.waves[wave]);
    if (!angles.factors.empty()) waves.float32_angles.factors.push_back(angles.factors[wave]);
    if (!angles.blends.empty()) waves.float32_angles.blends.push_back(angles.blends[wave]);
  }
}

// The same waves with `fine` points per position.
PositionTable finer(PositionTable table, std::int64_t fine) {
  for (Wave& wave : std::get<Waves>(table.form.source).waves) {
    wave.frequency = frequency_from_radians(radians_of(wave.frequency) / static_cast<double>(fine));
  }
  return table;
}

Curve line_of(const PositionTable& column, const Range& range, int points) {
  Curve curve;
  const auto* const waves = std::get_if<Waves>(&column.form.source);
  const bool is_smooth = waves != nullptr && waves->float32_angles.factors.empty();
  if (is_smooth) {
    // A slow wave needs only as many points as its number of turns.
    const double turns = static_cast<double>(range.count()) / wavelength_of(column.columns.front());
    points = static_cast<int>(std::min<double>(points, std::max(kFewestPoints, std::ceil(kPointsPerTurn * turns))));
  }
  std::int64_t fine = is_smooth ? std::clamp<std::int64_t>(points / range.count(), 1, 64) : 1;
  if (range.to > kPositionLimit / fine) fine = 1;
  const std::int64_t steps = (range.count() - 1) * fine;
  std::vector<std::int64_t> at;
  for (const std::int64_t step : evenly(steps + 1, std::max(points, 2))) at.push_back(range.from * fine + step);
  curve.y = values_at(fine > 1 ? finer(column, fine) : column, at);
  for (const std::int64_t place : at) {
    curve.x.push_back(static_cast<double>(place) / static_cast<double>(fine));
  }
  return curve;
}

// Samples positions from `from` up to `to`: enough to find a wave's extremes, and every position if there is no wave.
void add_places(const TableColumn& column, std::int64_t from, std::int64_t to, std::vector<std::int64_t>& places) {
  constexpr int kLooks = 128, kLooksPerWave = 32;
  if (column.radians == 0) {
    for (std::int64_t place = from; place < to; ++place) places.push_back(place);
    return;
  }
  const double apart = wavelength_of(column) / kLooksPerWave;
  std::int64_t last = -1;
  for (int look = 0; look < kLooks; ++look) {
    const std::int64_t place = from + std::llround(look * apart);
    if (place >= to) return;
    if (place != last) places.push_back(place);
    last = place;
  }
}

Curve area_of(const PositionTable& column, const Range& range, int points) {
  Curve curve;
  curve.is_area = true;
  // Each piece covers at least one wavelength, which avoids a beat pattern between pieces and waves.
  const double count = static_cast<double>(range.count());
  const double waves = std::max(std::floor(count / wavelength_of(column.columns.front())), 1.0);
  const std::int64_t pieces =
      column.columns.front().radians == 0 ? points : std::min<std::int64_t>(points, std::llround(waves));
  const auto start_of = [&](std::int64_t n) {
    return range.from + static_cast<std::int64_t>(count * static_cast<double>(n) / static_cast<double>(pieces));
  };
  for (std::int64_t n = 0; n < pieces; ++n) {
    std::vector<std::int64_t> places;
    add_places(column.columns.front(), start_of(n), std::max(start_of(n + 1), start_of(n) + 1), places);
    const std::vector<double> values = values_at(column, places);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    curve.x.push_back(static_cast<double>(start_of(n)));
    curve.y.push_back(*low);
    curve.high.push_back(*high);
  }
  curve.x.push_back(static_cast<double>(range.to - 1));
  curve.y.push_back(curve.y.back());
  curve.high.push_back(curve.high.back());
  return curve;
}

}  // namespace

PositionTable position_table(const PlottedScheme& scheme, const Request& request, std::int64_t length) {
  const std::string_view name = name_of(scheme.scheme);
  const auto refuse_without_numbers = [&] {
    raise(fmt::format("{}: gives a position no numbers of its own (additions and rotations do)", name));
  };
  if (is_bias(scheme.scheme)) refuse_without_numbers();
  const Form form = form_of(scheme, request, length);
  PositionTable table;
  if (position_axes_of(form) != 1) {
    raise(fmt::format("{}: positions have several axes, and figures have one", name));
  }
  if (const auto* const addition = std::get_if<Addition>(&form)) {
    table.form = *addition;
  } else if (const auto* const rotation = std::get_if<Rotation>(&form)) {
    if (has_growth(*rotation)) raise("rope: with xpos, lengths change with position; this figure shows none");
    table.is_rotation = true;
    table.form.width = 2 * pairs_of(*rotation);
    if (std::holds_alternative<Mixture>(rotation->source)) {
      table.form.source = mixed_rows(head_of(*rotation, 0), length);
    } else {
      Waves waves = waves_of(head_of(*rotation, 0));
      waves.scale = rotation->magnitude;  // also applies to float32 angles
      table.form.source = std::move(waves);
    }
  } else {
    refuse_without_numbers();
  }
  table.columns = columns_of_form(table.form, table.is_rotation);
  return table;
}

PositionTable picked(const PositionTable& table, const std::vector<std::int64_t>& features) {
  PositionTable result;
  result.is_rotation = table.is_rotation;
  for (const std::int64_t feature : features) {
    if (feature < 0 || feature >= table.form.width) {
      raise(fmt::format("features: {} is not from 0 to {}", feature, table.form.width - 1));
    }
    result.columns.push_back(table.columns[feature]);
  }
  result.form = table.form;
  if (auto* const waves = std::get_if<Waves>(&result.form.source)) {
    const std::vector<WaveColumn> all = std::move(waves->columns);
    waves->columns.clear();
    for (const std::int64_t feature : features) waves->columns.push_back(all[feature]);
    result.form.width = static_cast<std::int64_t>(features.size());
    drop_unused(*waves);
  }
  return result;
}

std::vector<double> values_at(const PositionTable& table, const std::vector<std::int64_t>& positions) {
  const auto count = static_cast<std::int64_t>(positions.size());
  std::vector<double> all(positions.size() * table.form.width);
  if (all.empty()) return all;
  tabulate(view(all.data(), {count, table.form.width}), {.ids = positions}, table.form);
  if (is_wave(table)) return all;
  // Other tables are always tabulated with all columns.
  std::vector<double> values;
  for (std::int64_t row = 0; row < count; ++row) {
    for (const TableColumn& column : table.columns) {
      values.push_back(all[row * table.form.width + column.feature]);
    }
  }
  return values;
}

std::vector<double> values_from(const PositionTable& table, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < count; ++i) positions.push_back(first + i);
  return values_at(table, positions);
}

bool is_wave(const PositionTable& table) { return std::holds_alternative<Waves>(table.form.source); }

double wavelength_of(const TableColumn& column) {
  if (column.radians == 0) return std::numeric_limits<double>::infinity();
  return 2 * std::numbers::pi / std::fabs(column.radians);
}

Curve curve_of(const PositionTable& column, const Range& range, int points) {
  const bool fits = range.count() <= points || std::holds_alternative<Lines>(column.form.source);
  const double step = static_cast<double>(range.count()) / points;
  const bool is_slow = is_wave(column) && wavelength_of(column.columns.front()) >= kPointsPerWave * step;
  return fits || is_slow ? line_of(column, range, points) : area_of(column, range, points);
}

std::vector<std::int64_t> evenly(std::int64_t size, std::int64_t count) {
  std::vector<std::int64_t> indices;
  const std::int64_t taken = std::min(size, count);
  for (std::int64_t i = 0; i < taken; ++i) {
    const double share = taken > 1 ? static_cast<double>(i) / static_cast<double>(taken - 1) : 0;
    indices.push_back(taken == size ? i : std::llround(share * static_cast<double>(size - 1)));
  }
  return indices;
}

std::vector<std::int64_t> heads_shown(const Request& request, std::int64_t heads, std::int64_t most,
                                      std::string_view name) {
  if (!request.head || heads == 1) return evenly(heads, most);  // a bias shared by all heads is drawn once
  if (*request.head >= heads) {
    raise(fmt::format("{}: there is no head {}; it has {}, from 0 on", name, *request.head, heads));
  }
  return {*request.head};
}

std::string described(const Scheme& scheme) {
  const Json json = json_of(scheme), usual = json_of(scheme_named(name_of(scheme)));
  std::string text(name_of(scheme));
  for (const auto& [key, value] : *json.as<Json::Object>()) {
    const bool is_size = key == "width" || key == "dims" || key == "heads" || key == "base";
    if (key == "scheme" || (!is_size && usual.find(key) != nullptr && *usual.find(key) == value)) continue;
    std::string shown = dump_json(value);
    if (const auto* const number = value.as<double>()) shown = fmt::format("{}", *number);
    if (const auto* const word = value.as<std::string>()) shown = *word;
    if (const Json* const type = value.find("type")) {
      shown = type->as<std::string>() != nullptr ? *type->as<std::string>() : shown;
      if (const Json* const factor = value.find("factor"); factor != nullptr && factor->as<double>() != nullptr) {
        shown += fmt::format(" × {}", *factor->as<double>());
      }
    }
    if (shown.size() > 40) shown = shown.substr(0, 36) + " …]";
    text += fmt::format(", {} {}", key, shown);
  }
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string numerics_note(Numerics numerics) {
  return numerics == Numerics::kExact ? "" : fmt::format("; angles as {} makes them", name_of(numerics));
}

Form form_of(const PlottedScheme& scheme, const Request& request, std::int64_t length) {
  return prepare(scheme.scheme, {.length = request.length > 0 ? request.length : length,
                                 .numerics = request.numerics,
                                 .weights = scheme.weights});
}

Range range_of(const Request& request, Range usual, std::int64_t most, std::string_view kind) {
  const Range range = request.zoom.value_or(usual);
  if (range.count() > most) {
    raise(fmt::format("{}: zoom {} to {} is more than {} positions", kind, range.from, range.to, most));
  }
  return range;
}

}  // namespace posenc::figures
