// The state that one block of queries keeps from tile to tile, whatever multiplies, for code that is compiled once per
// SIMD target. A tile is a panel: its rows are keys and its columns queries.

#if defined(POSENC_BLOCK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_BLOCK_INL_H
#undef POSENC_BLOCK_INL_H
#else
#define POSENC_BLOCK_INL_H
#endif

#include <algorithm>
#include <limits>

#include "attention/cpu/panel-inl.h"
#include "attention/cpu/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline AlignedVector<float> floats(std::int64_t count, bool is_wanted = true) {
  return AlignedVector<float>(is_wanted ? static_cast<std::size_t>(count) : 0);
}

// Queries and keys of a block, queries of a panel, and the features of v, padded as its products need them.
struct BlockSizes {
  std::int64_t queries, keys, width, value_features;
};
// The width, known to compilers where vectors have a fixed length.
template <class Products> HWY_INLINE std::int64_t width_of() { return Products::kVectors * lanes(); }
// Large blocks, if there are enough of them for many threads. The number of threads itself must not affect a result.
inline std::int64_t queries_of_block(const AttentionJob& job, bool by_matrix) {
  const bool has_many = job.q.batch * job.q.heads * job.q.sequence >= 16 * kLargeQueryBlock;
  const bool share_more = by_matrix || job.k_rotation.cos_sin != nullptr;
  if (has_many && share_more) return kLargeQueryBlock;
  return by_matrix ? kMatrixQueryBlock : kQueryBlock;
}

// For terms that read q and k (vectors-inl.h, contextual-inl.h); empty for any other.
struct ContentState {
  // a panel of what is multiplied with vectors, if it differs from q as used for the scores
  bool has_own_queries;
  AlignedVector<float> own_queries;
  AlignedVector<float> relative;     // [panels, rows, width]: queries times the vectors that distances select
  AlignedVector<float> row_weights;  // [panels, rows, width]: sums of weights by the vector added to their values
  // the gates that each query has counted so far, as two f32 each; keys are processed from the last to the first
  AlignedVector<float> counts, count_errors;

  ContentState(const AttentionJob& job, const ScoreBias& bias, std::int64_t queries)
      : has_own_queries(bias.query_rows > 0 &&
                        (job.position_queries.data != nullptr || job.vector_scale != job.scale)),
        own_queries(floats(kMostWidth * bias.query_features, has_own_queries)),
        relative(floats(queries * bias.query_rows)),
        row_weights(floats(queries * bias.value_rows)),
        counts(floats(queries, bias.counts_gates)),
        count_errors(floats(queries, bias.counts_gates)) {}
  void clear() {
    for (AlignedVector<float>* sums : {&row_weights, &counts, &count_errors}) {
      std::fill(sums->begin(), sums->end(), 0.0f);
    }
  }
};

struct Block : BlockSizes {
  const AttentionJob& job;
  const ScoreBias& bias;
  std::int64_t features = job.q.features;
  AlignedVector<float> accumulator = floats(queries * value_features);  // panels
  AlignedVector<float> row_max = floats(queries), row_sum = floats(queries);
  AlignedVector<float> scores = floats(kKeyBlock * kMostWidth), bias_tile = floats(kKeyBlock * kMostWidth);  // panels
  AlignedVector<float> rows = floats(kKeyBlock * std::max(features, bias.query_features));  // scratch
  AlignedVector<float> results = floats(kMostLanes * job.v.features);                       // of a vector of queries
  ContentState content{job, bias, queries};

  std::int64_t b = 0, h = 0, begin = 0, end = 0;  // the queries
  std::int64_t first_key = 0, last_key = 0;       // the key block

  Block(const AttentionJob& a_job, const ScoreBias& a_bias, const BlockSizes& sizes)
      : BlockSizes(sizes), job(a_job), bias(a_bias) {}
  std::int64_t key_head() const { return h / job.group; }
  float* sums_of(std::int64_t panel) { return accumulator.data() + panel * value_features * width; }
};

// The softmax of every query begins anew. A sink is a score that each has already processed, with a value of 0.
inline void clear_sums(Block& block) {
  std::fill(block.accumulator.begin(), block.accumulator.end(), 0.0f);
  block.content.clear();
  const float sink = block.job.sinks == nullptr ? kNone : static_cast<float>(block.job.sinks[block.h] * kLog2E);
  std::fill(block.row_sum.begin(), block.row_sum.end(), sink == kNone ? 0.0f : 1.0f);
  std::fill(block.row_max.begin(), block.row_max.end(), sink);
}

// Values of a block of keys as rows of f32.
struct ValueRows {
  const float* first = nullptr;
  std::int64_t stride = 0;
  HWY_INLINE const float* row(std::int64_t j) const { return first + j * stride; }
};

// Keys `begin` to `end` of a block of keys and a panel of `count` queries from `first` on.
struct Tile {
  std::int64_t panel, first, count, begin, end;
  float factor = 1;  // still to be applied to the scores
};

// The keys that the queries of a panel attend to, together.
struct PanelRange {
  std::int64_t begin, end;          // visible to some query
  std::int64_t all_begin, all_end;  // visible to all
  std::int64_t diagonal;            // of the first query
  bool is_row;                      // the queries are beside consecutive keys
};
HWY_INLINE PanelRange key_range_of(const Block& block, std::int64_t first, std::int64_t count) {
  const KeyRange& start = block.job.key_range(block.b, first);
  PanelRange panel{start.begin, start.end, start.begin, start.end, start.diagonal, true};
  bool is_any = start.begin < start.end;
  for (std::int64_t i = 1; i < count; ++i) {
    const KeyRange& key_range = block.job.key_range(block.b, first + i);
    panel.all_begin = std::max(panel.all_begin, key_range.begin);
    panel.all_end = std::min(panel.all_end, key_range.end);
    if (key_range.diagonal != start.diagonal + i) panel.is_row = false;
    if (key_range.begin == key_range.end) continue;
    panel.begin = is_any ? std::min(panel.begin, key_range.begin) : key_range.begin;
    panel.end = is_any ? std::max(panel.end, key_range.end) : key_range.end;
    is_any = true;
  }
  if (!is_any) panel.begin = panel.end = 0;
  return panel;
}

// The panels of a block of queries, and the keys that any of them attends to.
struct QueryPanels {
  PanelRange ranges[kLargeQueryBlock / kPanelVectors];
  std::int64_t count = 0;
  struct {
    std::int64_t begin = std::numeric_limits<std::int64_t>::max(), end = 0;
  } keys;

  explicit QueryPanels(const Block& block) {
    for (std::int64_t first = block.begin; first < block.end; first += block.width) {
      const PanelRange range = ranges[count++] = key_range_of(block, first, std::min(block.width, block.end - first));
      if (range.begin == range.end) continue;
      keys.begin = std::min(keys.begin, range.begin);
      keys.end = std::max(keys.end, range.end);
    }
  }
  // The tile of a panel and the keys from `key` on, a block of them; empty if the panel attends to none.
  Tile tile(const Block& block, std::int64_t panel, std::int64_t key) const {
    const std::int64_t first = block.begin + panel * block.width;
    return {panel, first, std::min(block.width, block.end - first),
            std::max(ranges[panel].begin - key, std::int64_t{0}),
            std::min({ranges[panel].end, key + block.keys, keys.end}) - key};
  }
};

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
