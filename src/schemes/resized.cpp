#include "posenc/schemes/resized.h"

#include <algorithm>
#include <cmath>

#include "numerics/elements.h"
#include "schemes/check.h"

namespace posenc {
namespace {

constexpr std::int64_t kMostExtent = 4096, kMostNumbers = std::int64_t{1} << 28;

void check_resized(const Resized& s) {
  const auto check_grid = [&](std::string_view field, const std::vector<std::int64_t>& extents) {
    if (extents.size() != 2) {
      raise(fmt::format("resized: {} must be 2 extents, rows and columns, but has {}", field, extents.size()));
    }
    for (const std::int64_t extent : extents) schemes::check_between(Resized::name, field, extent, 1, kMostExtent);
  };
  check_grid("trained_grid", s.trained_grid);
  check_grid("new_grid", s.new_grid);
  schemes::check_between(Resized::name, "width", s.width, 1, schemes::kWidthLimit);
  schemes::check_between(Resized::name, "prefix", s.prefix, 0, 1 << 20);
  for (const auto& extents : {s.trained_grid, s.new_grid}) {
    if (extents[0] * extents[1] + s.prefix <= kMostNumbers / s.width) continue;
    raise(fmt::format("resized: {} by {} cells of {} features are more than {} numbers", extents[0], extents[1],
                      s.width, kMostNumbers));
  }
  if (s.corners && s.antialias) raise("resized: corners and antialias cannot be combined");
}

// A trained cell on one axis and its weight in a new one.
struct Tap {
  std::int64_t cell;
  double weight;
};

// Keys, 1981, "Cubic convolution interpolation for digital image processing".
double cubic(double t, double a) {
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

double hat(double t) { return std::max(0.0, 1 - std::fabs(t)); }

// The product first, then one division: exact whenever the centre is a double.
double centre_of(const Resized& s, std::int64_t cell, std::int64_t trained, std::int64_t extent) {
  const auto at = static_cast<double>(cell), from = static_cast<double>(trained), to = static_cast<double>(extent);
  if (s.corners) return extent == 1 ? 0 : at * (from - 1) / (to - 1);
  return (at + 0.5) * from / to - 0.5;
}

std::vector<Tap> plain_taps(const Resized& s, std::int64_t cell, std::int64_t trained, std::int64_t extent) {
  const double centre = centre_of(s, cell, trained, extent);
  const auto left = static_cast<std::int64_t>(std::floor(centre));
  const bool is_cubic = s.filter == ResizeFilter::kBicubic;
  std::vector<Tap> taps;
  for (std::int64_t i = left - (is_cubic ? 1 : 0); i <= left + (is_cubic ? 2 : 1); ++i) {
    const double t = centre - static_cast<double>(i);
    const double weight = is_cubic ? cubic(t, -0.75) : hat(t);
    if (weight != 0) taps.push_back({std::clamp<std::int64_t>(i, 0, trained - 1), weight});
  }
  return taps;
}

// As in Pillow and torch's antialias: the kernel is stretched, truncated at the edges and normalised.
std::vector<Tap> averaging_taps(const Resized& s, std::int64_t cell, std::int64_t trained, std::int64_t extent) {
  const bool is_cubic = s.filter == ResizeFilter::kBicubic;
  const double ratio = static_cast<double>(trained) / static_cast<double>(extent), wide = std::max(ratio, 1.0);
  const double centre =
      (static_cast<double>(cell) + 0.5) * static_cast<double>(trained) / static_cast<double>(extent);
  const double reach = (is_cubic ? 2 : 1) * wide;
  const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(centre - reach + 0.5)), 0);
  const auto last = std::min<std::int64_t>(static_cast<std::int64_t>(std::floor(centre + reach + 0.5)), trained);
  std::vector<Tap> taps;
  double sum = 0;
  for (std::int64_t i = first; i < last; ++i) {
    const double t = (static_cast<double>(i) - centre + 0.5) / wide;
    taps.push_back({i, is_cubic ? cubic(t, -0.5) : hat(t)});
    sum += taps.back().weight;
  }
  for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

std::vector<std::vector<Tap>> taps_of_axis(const Resized& s, std::size_t axis) {
  std::vector<std::vector<Tap>> taps;
  for (std::int64_t cell = 0; cell < s.new_grid[axis]; ++cell) {
    taps.push_back(s.antialias ? averaging_taps(s, cell, s.trained_grid[axis], s.new_grid[axis])
                               : plain_taps(s, cell, s.trained_grid[axis], s.new_grid[axis]));
  }
  return taps;
}

// Calls visit(row of the resized table, row of the trained one, weight) for every pair with a weight.
template <class Visit> void each_share(const Resized& s, const Visit& visit) {
  for (std::int64_t row = 0; row < s.prefix; ++row) visit(row, row, 1.0);
  const auto rows = taps_of_axis(s, 0), columns = taps_of_axis(s, 1);
  std::int64_t out = s.prefix;
  for (const std::vector<Tap>& down : rows) {
    for (const std::vector<Tap>& across : columns) {
      for (const Tap& y : down) {
        for (const Tap& x : across) {
          visit(out, s.prefix + y.cell * s.trained_grid[1] + x.cell, y.weight * x.weight);
        }
      }
      ++out;
    }
  }
}

double element_of(const ConstTensorView& table, std::int64_t row, std::int64_t column) {
  if (table.type > DataType::kBF16) {
    raise(fmt::format("resized: the table must be f32, f64, f16 or bf16 but is {}", name_of(table.type)));
  }
  return numerics::table_element<double>(table, row, column);
}

template <class T> Rows owned_rows(const std::vector<double>& values, const Extents& shape) {
  Boxed<SharedNumbers> owner = shared(std::vector<T>(values.begin(), values.end()));
  const ConstTensorView table = view(static_cast<const T*>(data_of(owner)), shape);
  return {table, 0, std::move(owner)};
}

}  // namespace

TrainedTable Resized::trained_table() const {
  // for extents that prepare() rejects: at most what fits
  const auto extent = [](std::int64_t cells) { return std::clamp<std::int64_t>(cells, 0, 1 << 12); };
  const std::int64_t cells = trained_grid.size() == 2 ? extent(trained_grid[0]) * extent(trained_grid[1]) : 0;
  return {{{"rows", std::clamp<std::int64_t>(prefix, 0, 1 << 20) + cells}, {"width", width}}};
}

Addition prepare(const Resized& s, const PrepareOptions& options) {
  check_resized(s);
  const ConstTensorView table = schemes::table_of_shape(Resized::name, options.weights, shape_of(s.trained_table()));
  if (table.device != Device::kHost) raise("resized: the trained table must be on the host, where it is resized");
  const Extents shape{s.prefix + s.new_grid[0] * s.new_grid[1], s.width};
  std::vector<double> values(count_of(shape));
  each_share(s, [&](std::int64_t to, std::int64_t from, double weight) {
    for (std::int64_t c = 0; c < s.width; ++c) {
      values[to * s.width + c] += weight * element_of(table, from, c);
    }
  });
  return {s.width,
          table.type == DataType::kF64 ? owned_rows<double>(values, shape) : owned_rows<float>(values, shape)};
}

std::vector<double> backward(const Resized& s, std::span<const double> d_table) {
  check_resized(s);
  const std::int64_t rows = s.prefix + s.new_grid[0] * s.new_grid[1];
  if (static_cast<std::int64_t>(d_table.size()) != rows * s.width) {
    raise(fmt::format("resized: the gradient must have {} numbers, rows by width, but has {}", rows * s.width,
                      d_table.size()));
  }
  std::vector<double> d_trained(count_of(shape_of(s.trained_table())));
  each_share(s, [&](std::int64_t from, std::int64_t to, double weight) {
    for (std::int64_t c = 0; c < s.width; ++c) {
      d_trained[to * s.width + c] += weight * d_table[from * s.width + c];
    }
  });
  return d_trained;
}

}  // namespace posenc
