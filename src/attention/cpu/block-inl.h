// The state of one block of queries, and how position and masks enter its tiles of scores; for code that is compiled
// once per SIMD target. A tile is a panel: its rows are keys and its columns queries.

#if defined(POSENC_BLOCK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_BLOCK_INL_H
#undef POSENC_BLOCK_INL_H
#else
#define POSENC_BLOCK_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/content_terms.h"
#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/matrix_16-inl.h"
#include "attention/cpu/pack-inl.h"
#include "attention/cpu/panel-inl.h"
#include "attention/cpu/tanh-inl.h"
#include "attention/cpu/tiles.h"
#include "attention/cpu/vectors-inl.h"
#include "hwy/highway.h"
#include "terms/all-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline std::size_t floats(std::int64_t count, bool is_wanted = true) {
  return is_wanted ? static_cast<std::size_t>(count) : 0;
}

// The state of one block of queries.
struct Block {
  const AttentionJob& job;
  const ScoreBias& bias;
  bool keeps_keys;                                 // packed keys stay for the next block of queries
  bool by_matrix = is_for_matrix_unit(job, bias);  // products in bf16; q, k and weights are in `operands`
  std::int64_t queries = queries_of_block(job, by_matrix),
               keys = by_matrix ? matrix_keys(std::max(job.q.features, job.v.features)) : kKeyBlock;
  std::int64_t width = by_matrix ? matrix_width() : panel_width();
  std::int64_t features = job.q.features;
  std::int64_t value_group = by_matrix ? kValueGroup : kGroup;
  std::int64_t value_features = (job.v.features + value_group - 1) / value_group * value_group;
  // v can be read in place, without a copy
  bool v_in_place = job.v.type == DataType::kF32 && job.v.feature_stride == 1 && job.v.features % kGroup == 0 &&
                    job.v.pages == nullptr;
  AlignedVector<float> q = AlignedVector<float>(floats(queries * features, !by_matrix));      // panels
  AlignedVector<float> accumulator = AlignedVector<float>(floats(queries * value_features));  // panels
  AlignedVector<float> row_max = AlignedVector<float>(floats(queries)),
                       row_sum = AlignedVector<float>(floats(queries));
  AlignedVector<float> k = AlignedVector<float>(floats(kKeyBlock * features, !by_matrix));         // groups
  AlignedVector<float> v = AlignedVector<float>(floats(kKeyBlock * value_features, !v_in_place));  // rows
  AlignedVector<float> scores = AlignedVector<float>(floats(kKeyBlock * kMostWidth));              // a panel
  AlignedVector<float> bias_tile = AlignedVector<float>(floats(kKeyBlock * kMostWidth));           // biases
  AlignedVector<float> rows = AlignedVector<float>(floats(kKeyBlock * std::max(features, bias.query_features)));
  bool rounds_rows = by_matrix && (job.q_rotation.is_rounded || job.k_rotation.is_rounded);
  AlignedVector<std::uint16_t> narrow = AlignedVector<std::uint16_t>(floats(kKeyBlock * features, rounds_rows));
  AlignedVector<float> results = AlignedVector<float>(floats(kMostLanes * job.v.features));  // of a vector of queries
  AlignedVector<float> relative = AlignedVector<float>(
      floats(queries * bias.query_rows));  // [panels, rows, width]: queries times the vectors that distances select
  // a panel of what is multiplied with those vectors, if it differs from q as used for the scores
  bool has_relative_queries = bias.query_rows > 0 &&
                              (job.position_queries.data != nullptr || job.vector_scale != job.scale);
  AlignedVector<float> relative_queries =
      AlignedVector<float>(floats(kMostWidth * bias.query_features, has_relative_queries));
  AlignedVector<float> row_weights = AlignedVector<float>(floats(
      queries * bias.value_rows));  // [panels, rows, width]: sums of weights by the vector added to their values
  // the gates that each query has counted so far, as two f32 each; keys are processed from the last to the first
  AlignedVector<float> counts = AlignedVector<float>(floats(queries, bias.counts_gates)),
                       count_errors = AlignedVector<float>(floats(queries, bias.counts_gates));
#if POSENC_MATRIX_16
  Operands16 operands = by_matrix ? Operands16(job, queries, keys, width, value_features, keeps_keys) : Operands16();
#if POSENC_OVERLAPS_16
  // the scores of the next tile, and the weights of the previous one
  AlignedVector<float> next_scores = AlignedVector<float>(floats(kKeyBlock * kMostLanes, by_matrix)),
                       last_weights = AlignedVector<float>(floats(kKeyBlock * kMostLanes, by_matrix));
  float slope = 0;  // of a tile whose bias is applied while its weights are computed
  struct Waiting {
    std::int64_t panel = -1, begin = 0, end = 0;
    const std::uint16_t* values = nullptr;
  } waiting;  // keys whose weights, in last_weights, are yet to be multiplied with their values; panel −1: none
#endif
#endif

  std::int64_t b = 0, h = 0, begin = 0, end = 0;  // the queries
  std::int64_t first_key = 0, last_key = 0;       // the key block
  const float* values = nullptr;                  // of the key block
  std::int64_t values_stride = 0;
  bool is_checked = false, is_finite = true;  // of its values; checked only if some are masked
  float factor = 1;                           // still to be applied to the tile of scores

  Block(const AttentionJob& a_job, const ScoreBias& a_bias, bool keeps)
      : job(a_job), bias(a_bias), keeps_keys(keeps) {}
};

// Whether a panel has three vectors or one.
HWY_INLINE bool is_wide(const Block& block) {
#if POSENC_OVERLAPS_16
  return !block.by_matrix;
#else
  (void)block;
  return true;
#endif
}

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

// --- a tile of scores: bias and mask -----------------------------------------------------------------------------

// A row of scores times the factor that is not yet in them: 1 except after a product by a matrix unit.
HWY_INLINE VF load_score(const float* HWY_RESTRICT s, int vector, VF factor) {
#if POSENC_MATRIX_16
  return hn::Mul(load(s, vector), factor);
#else
  (void)factor;
  return load(s, vector);
#endif
}

// score = at(key, vector, score), and the maximum for each query.
template <class At> HWY_INLINE void change_scores(Block& block, std::int64_t begin, std::int64_t end,
                                                  float* HWY_RESTRICT tile_max, const At& at) {
  VF most0 = hn::Set(DF(), kNone), most1 = most0, most2 = most0;
  const VF by = hn::Set(DF(), block.factor);
  float* HWY_RESTRICT s = block.scores.data() + begin * block.width;
  for (std::int64_t j = begin; j < end && !is_wide(block); ++j, s += block.width) {
    const VF s0 = at(j, 0, load_score(s, 0, by));
    store(s0, s, 0);
    most0 = hn::Max(most0, s0);
  }
  for (std::int64_t j = begin; j < end && is_wide(block); ++j, s += block.width) {
    const VF s0 = at(j, 0, load_score(s, 0, by)), s1 = at(j, 1, load_score(s, 1, by)),
             s2 = at(j, 2, load_score(s, 2, by));
    store(s0, s, 0);
    store(s1, s, 1);
    store(s2, s, 2);
    most0 = hn::Max(most0, s0);
    most1 = hn::Max(most1, s1);
    most2 = hn::Max(most2, s2);
  }
  store(most0, tile_max, 0);
  store(most1, tile_max, 1);
  store(most2, tile_max, 2);
  block.factor = 1;
}

// The factor, which is positive or 1, is not applied.
inline void find_row_max(const Block& block, std::int64_t begin, std::int64_t end, float* HWY_RESTRICT tile_max) {
  VF most0 = hn::Set(DF(), kNone), most1 = most0, most2 = most0;
  const float* HWY_RESTRICT s = block.scores.data() + begin * block.width;
  for (std::int64_t j = begin; j < end && !is_wide(block); ++j, s += block.width) most0 = hn::Max(most0, load(s, 0));
  for (std::int64_t j = begin; j < end && is_wide(block); ++j, s += block.width) {
    most0 = hn::Max(most0, load(s, 0));
    most1 = hn::Max(most1, load(s, 1));
    most2 = hn::Max(most2, load(s, 2));
  }
  const VF by = hn::Set(DF(), block.factor);
  store(hn::Mul(most0, by), tile_max, 0);
  store(hn::Mul(most1, by), tile_max, 1);
  store(hn::Mul(most2, by), tile_max, 2);
}

// Adds the term of the bias. If it is one number for the whole tile, returns that instead of adding it, and finds the
// maximum only if `finds_max`.
inline float add_term(Block& block, std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t end,
                      bool finds_max, float* HWY_RESTRICT tile_max) {
  const terms::Tokens tokens = block.job.tokens();
  const terms::HWY_NAMESPACE::TileContext context{
      block.job.bias,
      tokens,
      {block.b, block.h, first, count, block.first_key + begin, end - begin},
      block.bias_tile.data(),
      block.width};
  float constant = 0;
  terms::HWY_NAMESPACE::with_tile<terms::Lanes::kQueries>(block.bias.tiles, context, [&](const auto& tile) HWY_ATTR {
    constant = tile.constant;
    if (!tile.is_constant()) {
      change_scores(block, begin, end, tile_max,
                    [&](std::int64_t j, int vector, VF s) HWY_ATTR { return tile.add(j - begin, vector, s); });
    } else if (finds_max) {
      find_row_max(block, begin, end, tile_max);
    }
  });
  return constant;
}

// Adds what vectors that distances select contribute to the scores.
inline void add_vector_scores(Block& block, std::int64_t panel, std::int64_t first, std::int64_t count,
                              std::int64_t begin, std::int64_t end, float* HWY_RESTRICT tile_max) {
  add_vectors(block, panel, first, count, begin, end);
  const float* HWY_RESTRICT tile = block.bias_tile.data();
  const std::int64_t width = block.width;
  change_scores(block, begin, end, tile_max, [&](std::int64_t j, int vector, VF s) HWY_ATTR {
    return hn::Add(s, load(tile + j * width, vector));
  });
}

// c · tanh(score / c), applied before anything is added to the scores.
inline void cap_scores(Block& block, std::int64_t begin, std::int64_t end) {
  const auto cap = static_cast<float>(block.job.softcap * kLog2E);
  const VF by = hn::Set(DF(), block.factor);
  float* HWY_RESTRICT s = block.scores.data() + begin * block.width;
  for (std::int64_t j = begin; j < end; ++j, s += block.width) {
    store(cap_of(DF(), load_score(s, 0, by), cap), s, 0);
    if (!is_wide(block)) continue;
    store(cap_of(DF(), load_score(s, 1, by), cap), s, 1);
    store(cap_of(DF(), load_score(s, 2, by), cap), s, 2);
  }
  block.factor = 1;
}

// The caller's mask: added to the score; a masked score becomes −inf, whatever it was.
inline void add_mask(Block& block, std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t end,
                     float* HWY_RESTRICT tile_max) {
  const std::int64_t width = block.width;
  for (std::int64_t i = 0; i < width; ++i) {
    for (std::int64_t j = begin; j < end; ++j) {
      block.bias_tile[static_cast<std::size_t>(j * width + i)] =
          i < count ? static_cast<float>(kLog2E * block.job.mask.at(block.b, block.h, first + i, block.first_key + j))
                    : 0.0f;
    }
  }
  const float* HWY_RESTRICT tile = block.bias_tile.data();
  const VF none = hn::Set(DF(), kNone);
  change_scores(block, begin, end, tile_max, [&](std::int64_t j, int vector, VF s) HWY_ATTR {
    const VF added = load(tile + j * width, vector);
    return hn::IfThenElse(hn::Eq(added, none), none, hn::Add(s, added));
  });
}

inline bool has_padding(const Block& block, std::int64_t j) {
  const AttentionJob& job = block.job;
  return job.key_mask != nullptr && job.key_mask[block.b * job.k.sequence + block.first_key + j] == 0;
}

// Writes −inf where a query does not attend to a key.
inline void mask_keys(Block& block, std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t end,
                      float* HWY_RESTRICT tile_max) {
  HWY_ALIGN float from[kMostWidth] = {}, to[kMostWidth] = {};  // in the tile; empty past the last query
  for (std::int64_t i = 0; i < count; ++i) {
    const KeyRange& key_range = block.job.key_range(block.b, first + i);
    from[i] = static_cast<float>(std::clamp(key_range.begin - block.first_key, std::int64_t{0}, kKeyBlock));
    to[i] = static_cast<float>(std::clamp(key_range.end - block.first_key, std::int64_t{0}, kKeyBlock));
  }
  const VF f0 = load(from, 0), f1 = load(from, 1), f2 = load(from, 2);
  const VF t0 = load(to, 0), t1 = load(to, 1), t2 = load(to, 2);
  const VF none = hn::Set(DF(), kNone);
  change_scores(block, begin, end, tile_max, [&](std::int64_t j, int vector, VF s) HWY_ATTR {
    if (has_padding(block, j)) return none;
    const VF key = hn::Set(DF(), static_cast<float>(j));
    const VF f = vector == 0 ? f0 : vector == 1 ? f1 : f2, t = vector == 0 ? t0 : vector == 1 ? t1 : t2;
    return hn::IfThenElse(hn::And(hn::Le(f, key), hn::Lt(key, t)), s, none);
  });
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
