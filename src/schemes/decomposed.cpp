#include "posenc/schemes/decomposed.h"

#include <algorithm>

#include "schemes/check.h"
#include "schemes/distance_table.h"
#include "schemes/table_values.h"

namespace posenc {
namespace {

const std::vector<std::int64_t>& trained_of(const Decomposed& s) {
  return s.trained_window.empty() ? s.window : s.trained_window;
}

void check(const Decomposed& s) {
  schemes::check_between(Decomposed::name, "number of extents of window", std::ssize(s.window), 1, 3);
  for (const std::int64_t extent : s.window) {
    schemes::check_between(Decomposed::name, "extents of window", extent, 1, 4096);
  }
  if (!s.trained_window.empty() && s.trained_window.size() != s.window.size()) {
    raise(fmt::format("decomposed: trained_window must have as many extents as window, {}, but has {}",
                      s.window.size(), s.trained_window.size()));
  }
  for (const std::int64_t extent : s.trained_window) {
    schemes::check_between(Decomposed::name, "extents of trained_window", extent, 1, 4096);
  }
}

std::int64_t rows_of(const std::vector<std::int64_t>& window) {
  std::int64_t rows = 0;
  for (const std::int64_t extent : window) rows += 2 * extent - 1;
  return rows;
}

// One resized row is (1 − share) · first + share · second.
struct Source {
  std::int64_t first = 0, second = 0;
  double share = 0;
};

// The sources of every row of the form's table, as rows of the trained one.
std::vector<Source> sources_of(const Decomposed& s) {
  std::vector<Source> sources;
  std::int64_t start = 0;  // of the axis, in the trained table
  for (std::size_t axis = 0; axis < s.window.size(); ++axis) {
    const std::int64_t from = 2 * trained_of(s)[axis] - 1, to = 2 * s.window[axis] - 1;
    for (std::int64_t row = 0; row < to; ++row) {
      // x = ((2 row + 1) from − to) / (2 to), in integers, so that a row between two is never off by one
      const std::int64_t above = std::max<std::int64_t>((2 * row + 1) * from - to, 0), below = 2 * to;
      const std::int64_t first = std::min(above / below, from - 1);
      sources.push_back({start + first, start + std::min(first + 1, from - 1),
                         static_cast<double>(above - first * below) / static_cast<double>(below)});
    }
    start += from;
  }
  return sources;
}

}  // namespace

TrainedTable Decomposed::trained_table() const {
  std::int64_t rows = 0;
  // for extents that prepare() rejects: at most what fits
  for (const std::int64_t extent : trained_window.empty() ? window : trained_window) {
    rows += std::clamp<std::int64_t>(extent, 0, std::int64_t{1} << 40) * 2 - 1;
  }
  return {{{"rows", rows}, {"features"}}};
}

Bias prepare(const Decomposed& s, const PrepareOptions& options) {
  check(s);
  const std::int64_t trained_rows = rows_of(trained_of(s)), rows = rows_of(s.window);
  const std::int64_t heads = schemes::check_vectors(Decomposed::name, {}, options.weights, trained_rows);
  DistanceVectors source;
  source.is_scaled = false;
  VectorsByDistance& vectors = source.for_queries;
  std::int64_t start = 0;
  for (const std::int64_t extent : s.window) {
    vectors.axes.push_back(schemes::map_of_extent(extent, start, 1));
    start += 2 * extent - 1;
  }
  if (trained_of(s) == s.window) {
    vectors.table = options.weights;
    return {heads, std::move(source)};
  }
  const std::int64_t features = options.weights.shape.back(0), tables = std::max<std::int64_t>(heads, 1);
  schemes::check_between(Decomposed::name, "number of resized values", tables * rows * features, 1,
                         std::int64_t{1} << 28);
  vectors.shape = heads > 0 ? Extents{heads, rows, features} : Extents{rows, features};
  const std::vector<Source> sources = sources_of(s);
  const std::vector<double> trained = schemes::table_values(Decomposed::name, options.weights);
  for (std::int64_t table = 0; table < tables; ++table) {
    const double* const from = trained.data() + table * trained_rows * features;
    for (const Source& at : sources) {
      for (std::int64_t f = 0; f < features; ++f) {
        const double first = from[at.first * features + f], second = from[at.second * features + f];
        vectors.values.push_back((1 - at.share) * first + at.share * second);
      }
    }
  }
  return {heads, std::move(source)};
}

std::vector<double> backward(const Decomposed& s, std::span<const double> d_vectors) {
  check(s);
  const std::int64_t rows = rows_of(s.window), count = std::ssize(d_vectors);
  if (count == 0 || count % rows != 0) {
    raise(fmt::format("decomposed: the gradient must have {} rows but has {} numbers", rows, count));
  }
  const std::int64_t features = count / rows;
  std::vector<double> d_table(rows_of(trained_of(s)) * features, 0.0);
  const std::vector<Source> sources = sources_of(s);
  for (std::int64_t row = 0; row < rows; ++row) {
    const Source& at = sources[row];
    for (std::int64_t f = 0; f < features; ++f) {
      const double d = d_vectors[row * features + f];
      d_table[at.first * features + f] += (1 - at.share) * d;
      d_table[at.second * features + f] += at.share * d;
    }
  }
  return d_table;
}

}  // namespace posenc
