// How position enters a tile of scores: ALiBi as one multiply-add on the distance, a table by distance (T5) as a
// slice that is constant far from the diagonal, anything else as a tile that is filled element by element.

#include "attention/cpu/score_bias.h"

#include <algorithm>
#include <cmath>

#include "attention/content_terms.h"
#include "terms/all.h"

namespace posenc::attend::cpu {
namespace {

// The least and greatest distance between a query and a key it attends to.
struct Reach {
  std::int64_t low = 0, high = 0;
};
Reach reach_of(const AttentionJob& job) {
  Reach reach;
  bool is_first = true;
  for (const Sight& sight : job.sights) {
    if (sight.begin == sight.end) continue;
    const std::int64_t low = sight.beside + job.places.shift - (sight.end - 1);
    const std::int64_t high = sight.beside + job.places.shift - sight.begin;
    reach.low = is_first ? low : std::min(reach.low, low);
    reach.high = is_first ? high : std::max(reach.high, high);
    is_first = false;
  }
  return reach;
}

// The table of one head, in units of log 2.
void fill_column(const ConstTensorView& table, std::int64_t h, AlignedVector<float>& column) {
  for (std::int64_t row = 0; row < table.shape[0]; ++row) {
    column[static_cast<std::size_t>(row)] =
        static_cast<float>(kLog2E * numerics::table_element<double>(table, row, h));
  }
}

DistanceRow distance_row(const DistanceMap& map, const AlignedVector<float>& column, const Reach& reach,
                         std::int64_t padding) {
  const auto value = [&](std::int64_t x) { return column[static_cast<std::size_t>(terms::entry_of(map, -x))]; };
  const std::int64_t last = terms::last_of(map);
  DistanceRow row;
  row.low = std::clamp(-last, reach.low, reach.high);
  row.high = std::clamp(-map.first, reach.low, reach.high);
  // a run of equal values at either end becomes part of the tail
  while (row.low < row.high && value(row.low) == value(row.low + 1)) ++row.low;
  while (row.high > row.low && value(row.high) == value(row.high - 1)) --row.high;
  row.first = row.low - padding;
  row.values.resize(static_cast<std::size_t>(row.high - row.low + 1 + 2 * padding));
  float* const values = row.values.data();
  std::fill_n(values, padding, value(row.low));
  for (std::int64_t x = row.low; x <= row.high; ++x) values[x - row.first] = value(x);
  std::fill_n(values + (row.high + 1 - row.first), padding, value(row.high));
  return row;
}

AlignedVector<float> vectors_of(const VectorsByDistance& vectors, const AttentionJob& job, double factor,
                                std::int64_t& rows) {
  AlignedVector<float> all;
  const ConstTensorView table = table_of(vectors);
  if (table.data == nullptr) return all;
  rows = table.shape.back(1);
  const std::int64_t features = table.shape.back(0);
  all.reserve(static_cast<std::size_t>(job.q.heads * rows * features));
  for (std::int64_t h = 0; h < job.q.heads; ++h) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t f = 0; f < features; ++f) {
        all.push_back(static_cast<float>(factor * terms::vector_element(table, h, row, f)));
      }
    }
  }
  return all;
}

void prepare_vectors(const DistanceVectors& vectors, const AttentionJob& job, ScoreBias& bias) {
  const double factor = job.vector_scale * kLog2E;
  bias.query_features = query_features_of(vectors);
  bias.query_vectors = vectors_of(vectors.for_queries, job, 1.0, bias.query_rows);
  bias.key_vectors = vectors_of(vectors.for_keys, job, factor, bias.key_rows);
  bias.value_vectors = vectors_of(vectors.for_values, job, 1.0, bias.value_rows);
  if (vectors.query_offsets.empty()) return;
  const ConstTensorView table = table_of(vectors.for_queries);
  bias.offset_scores.reserve(static_cast<std::size_t>(job.q.heads * bias.query_rows));
  for (std::int64_t h = 0; h < job.q.heads; ++h) {
    const double* const offset = vectors.query_offsets.data() + h * bias.query_features;
    for (std::int64_t row = 0; row < bias.query_rows; ++row) {
      double sum = 0;
      for (std::int64_t f = 0; f < bias.query_features; ++f)
        sum += offset[f] * terms::vector_element(table, h, row, f);
      bias.offset_scores.push_back(static_cast<float>(factor * sum));
    }
  }
}

void prepare_gates(const AttentionJob& job, std::int64_t padding, ScoreBias& bias) {
  const std::int64_t keys = job.k.sequence, rows = job.q.batch * job.q.heads;
  bias.gate_heads = job.q.heads;
  bias.gate_stride = keys + padding;
  bias.gate_highs.assign(static_cast<std::size_t>(rows * bias.gate_stride), 0.0f);
  bias.gate_lows.assign(bias.gate_highs.size(), 0.0f);
  for (std::int64_t row = 0; row < rows; ++row) {
    const double* const sums = job.gate_sums + row * keys;
    float* const highs = bias.gate_highs.data() + row * bias.gate_stride;
    float* const lows = bias.gate_lows.data() + row * bias.gate_stride;
    for (std::int64_t t = 0; t < keys; ++t) {
      const double sum = kLog2E * sums[t];
      highs[t] = static_cast<float>(sum);
      lows[t] = static_cast<float>(sum - static_cast<double>(highs[t]));
    }
  }
}

}  // namespace

ScoreBias prepare_bias(const AttentionJob& job, std::int64_t reach) {
  ScoreBias bias;
  if (job.bias == nullptr) return bias;
  const auto& source = job.bias->source;
  bias.kind = ScoreBias::Kind::kTile;
  if (const auto* vectors = std::get_if<DistanceVectors>(&source)) {
    prepare_vectors(*vectors, job, bias);
    return bias;
  }
  if (job.gate_sums != nullptr) {
    bias.kind = ScoreBias::Kind::kGates;
    prepare_gates(job, reach, bias);
    return bias;
  }
  if (const CountedGates* const counted = counted_gates_in(job)) {
    bias.kind = ScoreBias::Kind::kCounts;
    bias.query_features = job.q.features;
    VectorsByDistance rows;
    rows.table = counted->table;
    bias.query_vectors = vectors_of(rows, job, 1.0, bias.query_rows);
    return bias;
  }
  if (!job.places.by_index) return bias;
  if (const auto* slopes = std::get_if<Slopes>(&source)) {
    bias.kind = ScoreBias::Kind::kSlope;
    bias.slopes.reserve(slopes->slopes.size());
    for (const double slope : slopes->slopes) bias.slopes.push_back(static_cast<float>(-slope * kLog2E));
  } else if (const auto* table = std::get_if<DistanceTable>(&source)) {
    bias.kind = ScoreBias::Kind::kDistance;
    const Reach seen = reach_of(job);
    const ConstTensorView values = table_of(*table, job.bias->heads);
    AlignedVector<float> column(static_cast<std::size_t>(values.shape[0]));
    bias.rows.reserve(static_cast<std::size_t>(job.q.heads));
    for (std::int64_t h = 0; h < job.q.heads; ++h) {
      fill_column(values, h, column);
      bias.rows.push_back(distance_row(table->axes.front(), column, seen, 2 * reach));
    }
  }
  return bias;
}

void fill_tile(const AttentionJob& job, const TilePlace& place, float* tile, std::int64_t key_step,
               std::int64_t query_step) {
  const terms::Tokens tokens = job.tokens();
  terms::with_term(*job.bias, [&](const auto& source, auto term) {
    for (std::int64_t j = 0; j < place.keys; ++j) {
      for (std::int64_t i = 0; i < place.queries; ++i) {
        const terms::Score at{tokens, place.b, place.h, place.first_query + i, place.first_key + j};
        tile[j * key_step + i * query_step] = static_cast<float>(kLog2E * term.element(source, job.bias->heads, at));
      }
    }
  });
}

void fill_mask(const AttentionJob& job, const TilePlace& place, float* tile, std::int64_t key_step,
               std::int64_t query_step) {
  for (std::int64_t i = 0; i < place.queries; ++i) {
    for (std::int64_t j = 0; j < place.keys; ++j) {
      const double added = job.mask.at(place.b, place.h, place.first_query + i, place.first_key + j);
      tile[j * key_step + i * query_step] = std::isinf(added) ? 0.0f : static_cast<float>(kLog2E * added);
    }
  }
}

}  // namespace posenc::attend::cpu
