#include "posenc/schemes/transformer_xl.h"

#include <algorithm>

#include "numerics/real.h"
#include "numerics/wave.h"
#include "schemes/check.h"
#include "schemes/distance_table.h"
#include "schemes/table_values.h"

namespace posenc {
namespace {

constexpr std::int64_t kMostXlValues = std::int64_t{1} << 28;  // of the form's table: 2 GiB

std::int64_t reach_of(const TransformerXl& s, const PrepareOptions& options) {
  return s.clamp > 0 ? s.clamp : options.length - 1;
}

void check_bias_list(std::string_view field, const std::vector<double>& values, std::int64_t count) {
  if (!values.empty() && std::ssize(values) != count) {
    raise(fmt::format("transformer-xl: {} must have heads times features, {}, numbers, or none, but has {}", field,
                      count, values.size()));
  }
  for (const double value : values) schemes::check_finite(TransformerXl::name, field, value);
}

/// The features of a head.
std::int64_t check(const TransformerXl& s, const PrepareOptions& options) {
  schemes::check_between(TransformerXl::name, "heads", s.heads, 1, schemes::kHeadLimit);
  schemes::check_between(TransformerXl::name, "width", s.width, 2, schemes::kWidthLimit);
  if (s.width % 2 != 0) raise(fmt::format("transformer-xl: width must be even but is {}", s.width));
  if (!(s.base >= 1.0 && s.base <= 1e36)) {
    raise(fmt::format("transformer-xl: base must be between 1 and 1e36 but is {}", s.base));
  }
  schemes::check_between(TransformerXl::name, "clamp", s.clamp, 0, schemes::kDistanceLimit);
  if (s.clamp == 0) schemes::check_table_length(TransformerXl::name, options.length);
  const ConstTensorView& w = options.weights;
  if (w.data == nullptr) {
    raise(fmt::format("transformer-xl: the trained projection [{}, features, {}] is missing: pass it as weights",
                      s.heads, s.width));
  }
  if (w.shape.rank != 3 || w.shape[0] != s.heads || w.shape[1] < 1 || w.shape[2] != s.width) {
    raise(fmt::format("transformer-xl: the projection must be [{}, features, {}] but is {}", s.heads, s.width,
                      to_string(w.shape)));
  }
  const std::int64_t features = w.shape[1], rows = 2 * reach_of(s, options) + 1;
  if (features > kMostXlValues / rows / s.heads) {
    raise(fmt::format("transformer-xl: {} distances, {} heads and {} features are too many for one table", rows,
                      s.heads, features));
  }
  check_bias_list("content_bias", s.content_bias, s.heads * features);
  check_bias_list("position_bias", s.position_bias, s.heads * features);
  return features;
}

// The sines and cosines of distances, in pairs.
struct Sinusoids {
  std::vector<Frequency> frequencies;
  explicit Sinusoids(const TransformerXl& s) {
    for (const numerics::Real& radians : numerics::geometric(s.base, numerics::Real(2) / s.width, s.width / 2)) {
      frequencies.push_back(numerics::frequency_from(radians));
    }
  }
  numerics::SineCosine at(std::int64_t distance, std::int64_t pair) const {
    return numerics::sine_cosine(numerics::reduce({frequencies[pair], static_cast<std::uint64_t>(distance)}));
  }
};

// The columns of W that are multiplied with the sine and the cosine of a pair.
struct Columns {
  std::int64_t sine, cosine;
};
Columns columns_of(const TransformerXl& s, std::int64_t pair) {
  if (s.layout == WaveLayout::kInterleaved) return {2 * pair, 2 * pair + 1};
  const std::int64_t half = s.width / 2;
  return s.layout == WaveLayout::kSinCos ? Columns{pair, half + pair} : Columns{half + pair, pair};
}

// [heads, width, features] from [heads, features, width]: a sum over columns then covers all features at once.
std::vector<double> by_columns(const std::vector<double>& w, std::int64_t heads, std::int64_t features,
                               std::int64_t width) {
  std::vector<double> turned(w.size());
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t f = 0; f < features; ++f) {
      for (std::int64_t column = 0; column < width; ++column) {
        turned[(h * width + column) * features + f] = w[(h * features + f) * width + column];
      }
    }
  }
  return turned;
}

}  // namespace

TrainedTable TransformerXl::trained_table() const {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // for fields that prepare() rejects: at most what fits
  return {{{"heads", std::clamp<std::int64_t>(heads, 0, kMost)},
           {"features"},
           {"width", std::clamp<std::int64_t>(width, 0, kMost)}}};
}

Bias prepare(const TransformerXl& s, const PrepareOptions& options) {
  const std::int64_t features = check(s, options), reach = reach_of(s, options), rows = 2 * reach + 1;
  const std::vector<double> w =
      by_columns(schemes::table_values(TransformerXl::name, options.weights), s.heads, features, s.width);
  const Sinusoids waves(s);
  DistanceVectors source;
  VectorsByDistance& vectors = source.for_queries;
  vectors.shape = {s.heads, rows, features};
  vectors.values.resize(s.heads * rows * features);
  // cosines are even and sines are odd: one sum of each serves m − n = distance and −distance
  std::vector<double> even(s.heads * features), odd(even.size());
  for (std::int64_t distance = 0; distance <= reach; ++distance) {
    std::fill(even.begin(), even.end(), 0.0);
    std::fill(odd.begin(), odd.end(), 0.0);
    for (std::int64_t pair = 0; pair < s.width / 2; ++pair) {
      const numerics::SineCosine wave = waves.at(distance, pair);
      const Columns columns = columns_of(s, pair);
      for (std::int64_t h = 0; h < s.heads; ++h) {
        const double* const sine_column = w.data() + (h * s.width + columns.sine) * features;
        const double* const cosine_column = w.data() + (h * s.width + columns.cosine) * features;
        double* const odd_sums = odd.data() + h * features;
        double* const even_sums = even.data() + h * features;
        for (std::int64_t f = 0; f < features; ++f) odd_sums[f] += wave.sine * sine_column[f];
        for (std::int64_t f = 0; f < features; ++f) even_sums[f] += wave.cosine * cosine_column[f];
      }
    }
    for (std::int64_t at = 0; at < s.heads * features; ++at) {
      const std::int64_t h = at / features, f = at % features;
      const std::size_t sum = at;
      // row 0 is m − n = reach, as XLNet orders them
      vectors.values[(h * rows + reach - distance) * features + f] = even[sum] + odd[sum];
      vectors.values[(h * rows + reach + distance) * features + f] = even[sum] - odd[sum];
    }
  }
  DistanceMap map;
  map.first = -reach;
  map.open = s.clamp > 0;
  for (std::int64_t row = 0; row < rows; ++row) map.entries.push_back(row);
  vectors.axes.push_back(std::move(map));
  if (!s.content_bias.empty()) {  // u·k does not depend on the distance: one row
    source.for_keys.axes = {{.first = 0, .entries = {0}}};
    source.for_keys.values = s.content_bias;
    source.for_keys.shape = {s.heads, 1, features};
  }
  source.query_offsets = s.position_bias;
  return {s.heads, std::move(source)};
}

std::vector<double> backward(const TransformerXl& s, const PrepareOptions& options,
                             std::span<const double> d_vectors) {
  const std::int64_t features = check(s, options), reach = reach_of(s, options), rows = 2 * reach + 1;
  if (std::ssize(d_vectors) != s.heads * rows * features) {
    raise(
        fmt::format("transformer-xl: the gradient must have {} numbers, heads times distances times features, but "
                    "has {}",
                    s.heads * rows * features, d_vectors.size()));
  }
  const Sinusoids waves(s);
  std::vector<double> d_w(s.heads * features * s.width, 0.0);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t distance = reach - row;  // m − n
    for (std::int64_t pair = 0; pair < s.width / 2; ++pair) {
      const numerics::SineCosine wave = waves.at(distance < 0 ? -distance : distance, pair);
      const double sine = distance < 0 ? -wave.sine : wave.sine;
      const Columns columns = columns_of(s, pair);
      for (std::int64_t at = 0; at < s.heads * features; ++at) {
        const std::int64_t h = at / features, f = at % features;
        const double d = d_vectors[(h * rows + row) * features + f];
        d_w[at * s.width + columns.sine] += sine * d;
        d_w[at * s.width + columns.cosine] += wave.cosine * d;
      }
    }
  }
  return d_w;
}

}  // namespace posenc
