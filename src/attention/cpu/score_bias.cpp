// How position enters a tile of scores: terms as their modules prepare them, and the vectors that are multiplied with q, k
// and weights.

#include "attention/cpu/score_bias.h"

#include <cmath>

#include "attention/content_terms.h"
#include "terms/tables.h"
#include "terms/terms.h"

namespace posenc::attend::cpu {
namespace {

AlignedVector<float> vectors_of(const ConstTensorView& table, std::int64_t heads, double factor, std::int64_t& rows) {
  AlignedVector<float> all;
  if (table.data == nullptr) return all;
  rows = table.shape.back(1);
  const std::int64_t features = table.shape.back(0);
  all.reserve(heads * rows * features);
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t f = 0; f < features; ++f) {
        all.push_back(static_cast<float>(factor * terms::vector_element(table, h, row, f)));
      }
    }
  }
  return all;
}

void prepare_offsets(const std::vector<double>& offsets, const ConstTensorView& table, std::int64_t heads,
                     double factor, ScoreBias& bias) {
  bias.offset_scores.reserve(heads * bias.query_rows);
  for (std::int64_t h = 0; h < heads; ++h) {
    const double* const offset = offsets.data() + h * bias.query_features;
    for (std::int64_t row = 0; row < bias.query_rows; ++row) {
      double sum = 0;
      for (std::int64_t f = 0; f < bias.query_features; ++f)
        sum += offset[f] * terms::vector_element(table, h, row, f);
      bias.offset_scores.push_back(static_cast<float>(factor * sum));
    }
  }
}

}  // namespace

ScoreBias prepare_bias(const AttentionJob& job, std::int64_t reach) {
  ScoreBias bias;
  if (job.bias == nullptr) return bias;
  const std::int64_t heads = job.q.heads;
  bias.tiles = terms::tiles_of(*job.bias, job.tokens(), {job.q.batch, heads, reach});
  const terms::VectorTables tables = terms::vectors(*job.bias);
  const double factor = job.vector_scale * kLog2E;
  if (tables.queries.data != nullptr) bias.query_features = tables.queries.shape.back(0);
  bias.query_vectors = vectors_of(tables.queries, heads, 1.0, bias.query_rows);
  bias.key_vectors = vectors_of(tables.keys, heads, factor, bias.key_rows);
  bias.value_vectors = vectors_of(tables.values, heads, 1.0, bias.value_rows);
  bias.counts_gates = counted_gates_in(job) != nullptr;
  const DistanceVectors* const vectors = vectors_in(job);
  if (vectors != nullptr && !vectors->query_offsets.empty()) {
    prepare_offsets(vectors->query_offsets, tables.queries, heads, factor, bias);
  }
  return bias;
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
