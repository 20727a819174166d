#include "properties/rows.h"

#include <algorithm>
#include <cmath>

#include "posenc/apply.h"

namespace posenc::properties {
namespace {

// A column of zeros in place of a missing wave.
bool is_blank(const Waves& waves, const WaveColumn& column) {
  return column.quarter == 0 && waves.waves[column.wave].frequency == Frequency{};
}

double largest_of(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = larger(most, std::fabs(value));
  return most;
}

// A bound on cosines and sines of the mixture's first head, with a margin for the rounding of its sums.
double largest_of(const Mixture& mixture) {
  double most = larger(largest_of(mixture.cosine_offsets), largest_of(mixture.sine_offsets));
  for (const auto* const weights : {&mixture.cosines, &mixture.sines}) {
    const std::size_t mixed = mixture.mixed;
    for (std::size_t j = 0; j < mixed; ++j) {
      double sum = 0;
      for (std::size_t i = j; i < weights->size(); i += mixed) sum += std::fabs((*weights)[i]);
      most = larger(most, sum * (1 + 1e-12));
    }
  }
  return most;
}

// The largest value of the caller's table.
double largest_of(const Rows& rows, const Addition& form) {
  const std::size_t count = rows.table.shape[0] - rows.offset;
  std::vector<double> values(count * form.width);
  tabulate(view(values.data(), {rows.table.shape[0] - rows.offset, form.width}), {}, form);
  return largest_of(values);
}

// Appends every point of a grid that begins at `first` on each axis.
void append_grid(Sample& sample, std::int64_t first, std::int64_t extent) {
  const std::vector<std::int64_t> extents(sample.axes, extent);
  const std::vector<std::int64_t> grid = grid_positions(extents);
  const std::size_t points = grid.size() / extents.size();
  std::vector<std::int64_t> joined;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    const auto old = sample.ids.begin() + static_cast<std::ptrdiff_t>(axis * sample.count);
    joined.insert(joined.end(), old, old + static_cast<std::ptrdiff_t>(sample.count));
    for (std::size_t i = 0; i < points; ++i) joined.push_back(grid[axis * points + i] + first);
  }
  sample.count += points;
  sample.ids = std::move(joined);
}

}  // namespace

std::vector<std::int64_t> Sample::offset(std::size_t from, std::size_t to) const {
  std::vector<std::int64_t> result;
  for (int axis = 0; axis < axes; ++axis) result.push_back(at(axis, to) - at(axis, from));
  return result;
}

Sample sample_of(std::int64_t length, int axes, std::int64_t most) {
  Sample sample;
  sample.axes = axes;
  const auto side = [axes](std::int64_t count) {
    return std::max<std::int64_t>(2, std::llround(std::floor(std::pow(static_cast<double>(count), 1.0 / axes))));
  };
  if (length <= side(most)) {
    append_grid(sample, 0, length);
    return sample;
  }
  const std::int64_t half = std::min(side(most / 2), length / 2);
  append_grid(sample, 0, half);
  append_grid(sample, length - half, half);
  return sample;
}

Sample sample_at(const std::vector<std::int64_t>& positions, int axes) {
  Sample sample;
  sample.axes = axes;
  sample.count = positions.size();
  for (int axis = 0; axis < axes; ++axis) {
    sample.ids.insert(sample.ids.end(), positions.begin(), positions.end());
  }
  return sample;
}

bool has_rows(const Form& form) noexcept {
  const auto* const rotation = std::get_if<Rotation>(&form);
  return std::holds_alternative<Addition>(form) || (rotation != nullptr && !has_table(*rotation));
}

std::size_t width_of(const Form& form) noexcept {
  if (const auto* const addition = std::get_if<Addition>(&form)) return addition->width;
  if (const auto* const rotation = std::get_if<Rotation>(&form)) {
    return 2 * pairs_of(*rotation);
  }
  return 0;
}

template <class T>
std::vector<T> rows_at(const Form& form, const Positions& positions, std::size_t count, std::size_t batch) {
  const std::size_t width = width_of(form);
  std::vector<T> rows(batch * count * width);
  const auto tokens = static_cast<std::int64_t>(count), columns = static_cast<std::int64_t>(width),
             sequences = static_cast<std::int64_t>(batch);
  if (const auto* const addition = std::get_if<Addition>(&form)) {
    tabulate(view(rows.data(), {sequences, tokens, columns}), positions, *addition);
  } else if (const auto* const rotation = std::get_if<Rotation>(&form)) {
    const std::int64_t pairs = columns / 2;
    const Extents shape{sequences, tokens, pairs}, strides{tokens * columns, columns, 1};
    tabulate({rows.data(), data_type_of<T>(), shape, strides},
             {rows.data() + pairs, data_type_of<T>(), shape, strides}, positions, head_of(*rotation, 0));
  }
  return rows;
}
template std::vector<float> rows_at<float>(const Form&, const Positions&, std::size_t, std::size_t);
template std::vector<double> rows_at<double>(const Form&, const Positions&, std::size_t, std::size_t);

std::vector<WavePair> wave_pairs_of(const Form& form) {
  std::vector<WavePair> pairs;
  if (const auto* const rotation = std::get_if<Rotation>(&form)) {
    if (has_table(*rotation) || has_growth(*rotation) || std::holds_alternative<Mixture>(rotation->source)) return {};
    const std::size_t count = pairs_of(*rotation);
    for (std::size_t i = 0; i < count; ++i) pairs.push_back({count + i, i});
    return pairs;
  }
  const Waves* const waves = waves_of(form);
  if (waves == nullptr) return {};
  std::vector<std::vector<std::size_t>> found[2];  // sines and cosines of each wave
  for (auto& quarter : found) quarter.resize(waves->waves.size());
  for (std::size_t column = 0; column < waves->columns.size(); ++column) {
    const WaveColumn& wave = waves->columns[column];
    if (is_blank(*waves, wave)) continue;
    if (wave.quarter > 1) return {};
    found[wave.quarter][wave.wave].push_back(column);
  }
  for (std::size_t wave = 0; wave < waves->waves.size(); ++wave) {
    const auto& sines = found[0][wave];
    const auto& cosines = found[1][wave];
    if (sines.size() != cosines.size()) return {};
    for (std::size_t i = 0; i < sines.size(); ++i) pairs.push_back({sines[i], cosines[i]});
  }
  return pairs;
}

double signed_amplitude(const Form& form, const std::vector<WavePair>& pairs) {
  // The cosine at position 0.
  return rows_at<double>(form, sample_at({0}, position_axes_of(form)).positions(), 1)[pairs.front().cosine];
}

double amplitude_of(const Form& form, std::int64_t length) {
  if (const auto* const rotation = std::get_if<Rotation>(&form)) {
    const auto* const mixture = std::get_if<Mixture>(&rotation->source);
    return std::fabs(rotation->magnitude) * (mixture == nullptr ? 1 : largest_of(*mixture));
  }
  const auto* const addition = std::get_if<Addition>(&form);
  if (addition == nullptr) return 0;
  if (const auto* const waves = std::get_if<Waves>(&addition->source)) return std::fabs(waves->scale);
  if (const auto* const rows = std::get_if<Rows>(&addition->source)) return largest_of(*rows, *addition);
  // A straight line is largest at one end.
  const Sample ends = sample_at({0, length - 1}, 1);
  return largest_of(rows_at<double>(form, ends.positions(), ends.count));
}

double fastest_wave(const Form& form) noexcept {
  double fastest = 0;
  const auto look = [&](const Frequency& frequency) {
    fastest = std::max(fastest, std::fabs(radians_of(frequency)));
  };
  if (const Waves* const waves = waves_of(form)) {
    for (const Wave& wave : waves->waves) look(wave.frequency);
  }
  if (const auto* const rotation = std::get_if<Rotation>(&form)) {
    for (const Frequency& frequency : rotation->frequencies) look(frequency);
  }
  return fastest;
}

bool has_exact_angles(const Form& form) noexcept {
  if (const Waves* const waves = waves_of(form)) return waves->float32_angles.factors.empty();
  const auto* const rotation = std::get_if<Rotation>(&form);
  return rotation == nullptr || !has_float32_angles(*rotation);
}

double larger(double most, double value) noexcept { return value <= most || std::isnan(most) ? most : value; }

}  // namespace posenc::properties
