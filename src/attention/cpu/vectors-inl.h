// Vectors by distance in a block of queries, for code that is compiled once per SIMD target: their contribution to a
// tile of scores (Shaw, DeBERTa, Transformer-XL) and to the results (Shaw's values).

#if defined(POSENC_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_VECTORS_INL_H
#undef POSENC_VECTORS_INL_H
#else
#define POSENC_VECTORS_INL_H
#endif

#include <limits>

#include "attention/content_terms.h"
#include "attention/cpu/block-inl.h"
#include "attention/cpu/pack-inl.h"
#include "terms/distance_maps.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The row that the distance of a query and a key selects on one axis.
HWY_INLINE std::int64_t row_at(const VectorsByDistance& vectors, const Block& block, std::int64_t query,
                               std::int64_t key, int axis) {
  return terms::entry_of(vectors.axes[axis], block.job.tokens().distance(block.b, query, key, axis));
}

// A panel of what is multiplied with the vectors: q as for the keys, or packed again if the queries or their factor
// differ.
inline const float* relative_queries_of(Block& block, std::int64_t first, std::int64_t count, const float* q) {
  if (!block.content.has_own_queries) return q;
  const AttentionJob& job = block.job;
  const HeadTensor<const void>& x = job.position_queries.data != nullptr ? job.position_queries : job.q;
  load_rows(x, {}, block.b, block.h, first, first + count, block.bias.query_features, block.rows.data());
  pack_panel(block.rows.data(), count, block.bias.query_features, static_cast<float>(job.vector_scale * kLog2E),
             block.content.own_queries.data());
  return block.content.own_queries.data();
}

// The rows that the queries of a panel can select. A table may have a row for every distance in a long sequence.
struct TableRows {
  std::int64_t begin = 0, end = 0;
};
inline TableRows rows_of(const Block& block, std::int64_t first, std::int64_t count) {
  const TableRows all{0, block.bias.query_rows};
  if (block.bias.counts_gates) {  // no count exceeds the number of keys
    std::int64_t most = 0;
    for (std::int64_t i = first; i < first + count; ++i) {
      const KeyRange& key_range = block.job.key_range(block.b, i);
      most = std::max(most, key_range.end - key_range.begin);
    }
    return {0, std::min(all.end, most + 2)};  // and the row above that of an integer count
  }
  const VectorsByDistance& vectors = vectors_in(block.job)->for_queries;
  const terms::Tokens tokens = block.job.tokens();
  if (!block.job.places.by_index || vectors.axes.size() != 1) return all;
  std::int64_t nearest = std::numeric_limits<std::int64_t>::max(),
               furthest = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t i = first; i < first + count; ++i) {
    const KeyRange& key_range = block.job.key_range(block.b, i);
    if (key_range.begin == key_range.end) continue;
    nearest = std::min(nearest, tokens.distance(block.b, i, key_range.begin, 0));
    furthest = std::max(furthest, tokens.distance(block.b, i, key_range.end - 1, 0));
  }
  const DistanceMap& map = vectors.axes.front();
  const std::int64_t last = terms::last_of(map);
  TableRows range{all.end, all.begin};
  for (std::int64_t delta = std::clamp(nearest, map.first, last); delta <= std::clamp(furthest, map.first, last);
       ++delta) {
    const std::int64_t row = terms::entry_of(map, delta);
    if (row == kNoRow) continue;
    range.begin = std::min(range.begin, row);
    range.end = std::max(range.end, row + 1);
  }
  return range;
}

inline void score_vectors(Block& block, std::int64_t panel, std::int64_t first, std::int64_t count,
                          const float* HWY_RESTRICT q) {
  const std::int64_t width = block.width, features = block.bias.query_features;
  const TableRows rows = rows_of(block, first, count);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t at = block.h * block.bias.query_rows + row;
    const float* picked = block.bias.query_vectors.data() + at * features;
    VF m0 = hn::Set(DF(), block.bias.offset_scores.empty() ? 0.0f : block.bias.offset_scores[at]);
    VF m1 = m0, m2 = m0;
    for (std::int64_t f = 0; f < features; ++f) {
      const VF by = hn::Set(DF(), picked[f]);
      m0 = hn::MulAdd(by, load(q + f * width, 0), m0);
      m1 = hn::MulAdd(by, load(q + f * width, 1), m1);
      m2 = hn::MulAdd(by, load(q + f * width, 2), m2);
    }
    float* const relative = block.content.relative.data() + (panel * block.bias.query_rows + row) * width;
    store(m0, relative, 0);
    store(m1, relative, 1);
    store(m2, relative, 2);
  }
}

inline void add_vectors(Block& block, const Tile& at) {
  const DistanceVectors& vectors = *vectors_in(block.job);
  const std::int64_t width = block.width, rows = block.bias.query_rows, features = block.features;
  const int query_axes = rows > 0 ? static_cast<int>(vectors.for_queries.axes.size()) : 0;
  const int key_axes = block.bias.key_rows > 0 ? static_cast<int>(vectors.for_keys.axes.size()) : 0;
  const float* relative = block.content.relative.data() + at.panel * rows * width;
  for (std::int64_t j = at.begin; j < at.end; ++j) {
    float* tile = block.bias_tile.data() + j * width;
    const std::int64_t key = block.first_key + j;
    std::int64_t row_before = -1;
    float key_part = 0;
    if (block.bias.key_rows > 0) {
      load_rows(block.job.k, block.job.k_rotation, block.b, block.h / block.job.group, key, key + 1, features,
                block.rows.data());
    }
    for (std::int64_t i = 0; i < at.count; ++i) {
      float sum = 0;
      for (int axis = 0; axis < query_axes; ++axis) {
        const std::int64_t row = row_at(vectors.for_queries, block, at.first + i, key, axis);
        if (row != kNoRow) sum += relative[row * width + i];
      }
      for (int axis = 0; axis < key_axes; ++axis) {
        const std::int64_t row = row_at(vectors.for_keys, block, at.first + i, key, axis);
        if (row == kNoRow) continue;
        if (row != row_before) {  // in a tail, many queries share one row
          const float* picked = block.bias.key_vectors.data() + (block.h * block.bias.key_rows + row) * features;
          key_part = 0;
          for (std::int64_t f = 0; f < features; ++f) key_part += block.rows[f] * picked[f];
          row_before = row;
        }
        sum += key_part;
      }
      tile[i] = sum;
    }
  }
}

// Weights of keys that share a vector are summed first, so that each vector is multiplied once per query, at the end.
inline void add_row_weights(Block& block, const Tile& at) {
  const VectorsByDistance& vectors = vectors_in(block.job)->for_values;
  const int axes = static_cast<int>(vectors.axes.size());
  float* const sums = block.content.row_weights.data() + at.panel * block.bias.value_rows * block.width;
  for (std::int64_t j = at.begin; j < at.end; ++j) {
    const float* const weights = block.scores.data() + j * block.width;
    for (std::int64_t i = 0; i < at.count; ++i) {
      for (int axis = 0; axis < axes; ++axis) {
        const std::int64_t row = row_at(vectors, block, at.first + i, block.first_key + j, axis);
        if (row != kNoRow) sums[row * block.width + i] += weights[i];
      }
    }
  }
}

// accumulator[feature, lane] += Σ_row vectors[row, feature] · row_weights[row, lane]
inline void add_value_vectors(Block& block, std::int64_t panel) {
  const std::int64_t width = block.width, rows = block.bias.value_rows, features = block.job.v.features;
  const float* const vectors = block.bias.value_vectors.data() + block.h * rows * features;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* HWY_RESTRICT weights = block.content.row_weights.data() + (panel * rows + row) * width;
    const VF w0 = load(weights, 0), w1 = load(weights, 1), w2 = load(weights, 2);
    float* HWY_RESTRICT sums = block.sums_of(panel);
    for (std::int64_t f = 0; f < features; ++f, sums += width) {
      const VF by = hn::Set(DF(), vectors[row * features + f]);
      store(hn::MulAdd(by, w0, load(sums, 0)), sums, 0);
      store(hn::MulAdd(by, w1, load(sums, 1)), sums, 1);
      store(hn::MulAdd(by, w2, load(sums, 2)), sums, 2);
    }
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
