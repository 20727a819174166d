// The forward pass of FlashAttention (Dao et al., 2022; the loop order of FlashAttention-2, Dao, 2023) on a CPU, with
// position inside. One thread owns a query block. For each key block j it computes the tile of scores S = scale · Q
// K_jᵀ + bias, updates the online softmax (row_max is m, row_sum is l), rescales the output accumulator by 2^(m_old −
// m_new), adds P V_j, and drops the tile. At the end, O = accumulator / l and logsumexp = m + log l. Scores are in
// units of log 2, so that softmax needs only 2^x. Q and K are rotated as they are loaded; key blocks that no query of
// the block attends to are skipped; only tiles that the edge of a mask crosses are masked. Products are f32, or bf16
// by a matrix unit if there is one and the tensors are 16-bit (matrix_16-inl.h).

#include <cmath>
#include <limits>

#include "attention/cpu/tiles.h"
#include "kernels/cpu/parallel.h"
#include "posenc/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/forward.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// after foreach_target.h, so that they are compiled for each target
#include "attention/cpu/block-inl.h"
#include "attention/cpu/contextual-inl.h"
#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/matrix_16-inl.h"
#include "attention/cpu/overlap-inl.h"
#include "attention/cpu/pack-inl.h"
#include "attention/cpu/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// --- online softmax and the output accumulator -------------------------------------------------------------------

HWY_INLINE VF safe(VF row_max) {  // no visible key yet: −inf − −inf would be NaN
  return hn::IfThenElse(hn::Eq(row_max, hn::Set(DF(), kNone)), hn::Zero(DF()), row_max);
}

// Updates the row maximum m for a tile, and rescales row_sum and the output accumulator to it. `constant` is a bias
// shared by the whole tile that is not in its scores yet. `base`: what to subtract from a score, so that P = 2^(S −
// base).
void renew_row_max(Block& block, std::int64_t panel, const float* HWY_RESTRICT tile_max, float constant,
                   float* HWY_RESTRICT base) {
  const DF d;
  const std::int64_t width = block.width;
  float* HWY_RESTRICT row_max = block.row_max.data() + panel * width;
  float* HWY_RESTRICT row_sum = block.row_sum.data() + panel * width;
  const VF shift = hn::Set(d, constant);
  const bool has_three = is_wide(block);
  const int second = has_three ? 1 : 0, third = has_three ? 2 : 0;  // or the first again
  const VF o0 = load(row_max, 0), o1 = load(row_max, second), o2 = load(row_max, third);
  VF n0 = hn::Max(o0, hn::Add(load(tile_max, 0), shift));
  VF n1 = hn::Max(o1, hn::Add(load(tile_max, second), shift));
  VF n2 = hn::Max(o2, hn::Add(load(tile_max, third), shift));
#if POSENC_MATRIX_16
  // The products are so fast that rescaling would be noticeable. A maximum that is exceeded by less than 2^8 is kept,
  // which costs no precision; −inf is exceeded by anything.
  const VF reach = hn::Set(d, block.by_matrix ? 8.0f : 0.0f);
  const auto all_near = hn::And(hn::And(hn::Le(n0, hn::Add(o0, reach)), hn::Le(n1, hn::Add(o1, reach))),
                                hn::Le(n2, hn::Add(o2, reach)));
  if (hn::AllTrue(d, all_near)) n0 = o0, n1 = o1, n2 = o2;
#endif
  store(n0, row_max, 0);
  store(n1, row_max, second);
  store(n2, row_max, third);
  const VF m0 = safe(n0), m1 = safe(n1), m2 = safe(n2);
  const auto same = hn::And(hn::And(hn::Eq(o0, n0), hn::Eq(o1, n1)), hn::Eq(o2, n2));
  if (!hn::AllTrue(d, same)) {
#if POSENC_OVERLAPS_16
    if (block.waiting.panel == panel) add_waiting(block);  // its weights use the old maximum
#endif
    const VF a0 = exp2_of_negative(d, hn::Sub(o0, m0)), a1 = exp2_of_negative(d, hn::Sub(o1, m1)),
             a2 = exp2_of_negative(d, hn::Sub(o2, m2));
    const auto rescale = [&](float* HWY_RESTRICT x, std::int64_t rows) HWY_ATTR {
      for (std::int64_t row = 0; row < rows; ++row, x += width) {
        store(hn::Mul(load(x, 0), a0), x, 0);
        if (!has_three) continue;
        store(hn::Mul(load(x, 1), a1), x, 1);
        store(hn::Mul(load(x, 2), a2), x, 2);
      }
    };
    const VF none = hn::Set(d, kNone);
    const auto all_new = hn::And(hn::And(hn::Eq(o0, none), hn::Eq(o1, none)), hn::Eq(o2, none));
    if (!hn::AllTrue(d, all_new)) {  // otherwise there are only zeros to rescale
      rescale(row_sum, 1);
      rescale(block.accumulator.data() + panel * block.value_features * width, block.value_features);
      rescale(block.row_weights.data() + panel * block.bias.value_rows * width, block.bias.value_rows);
    }
  }
  store(hn::Sub(m0, shift), base, 0);
  store(hn::Sub(m1, shift), base, second);
  store(hn::Sub(m2, shift), base, third);
}

// Turns S into P, and adds it to row_sum.
void weigh(Block& block, std::int64_t panel, std::int64_t begin, std::int64_t end, const float* HWY_RESTRICT base) {
  const DF d;
  const std::int64_t width = block.width;
  float* HWY_RESTRICT row_sum = block.row_sum.data() + panel * width;
  const VF x0 = load(base, 0), x1 = load(base, 1), x2 = load(base, 2);
  VF t0 = hn::Zero(d), t1 = t0, t2 = t0;
  float* HWY_RESTRICT s = block.scores.data() + begin * width;
  for (std::int64_t j = begin; j < end; ++j, s += width) {
    const VF p0 = exp2_of_negative(d, hn::Sub(load(s, 0), x0));
    const VF p1 = exp2_of_negative(d, hn::Sub(load(s, 1), x1));
    const VF p2 = exp2_of_negative(d, hn::Sub(load(s, 2), x2));
    store(p0, s, 0);
    store(p1, s, 1);
    store(p2, s, 2);
    t0 = hn::Add(t0, p0);
    t1 = hn::Add(t1, p1);
    t2 = hn::Add(t2, p2);
  }
  store(hn::Add(load(row_sum, 0), t0), row_sum, 0);
  store(hn::Add(load(row_sum, 1), t1), row_sum, 1);
  store(hn::Add(load(row_sum, 2), t2), row_sum, 2);
}

bool values_are_finite(Block& block) {
  if (block.is_checked) return block.is_finite;
  block.is_checked = true;
#if POSENC_MATRIX_16
  if (block.by_matrix) {
    const std::int64_t keys = block.last_key - block.first_key;
    block.is_finite = are_values_finite(block.operands.v_at, keys, block.value_features);  // the upper planes
    if (block.is_finite) return true;
    // rows of f32 are created only here, where something is masked and not finite
    pack_rows(block.job.v, block.b, block.h / block.job.group, block.first_key, block.last_key, block.value_features,
              block.v.data());
    block.values = block.v.data();
    block.values_stride = block.value_features;
    return false;
  }
#endif
  VF worst = hn::Zero(DF());
  float rest = 0;
  for (std::int64_t j = 0; j < block.last_key - block.first_key; ++j) {
    const float* HWY_RESTRICT row = block.values + j * block.values_stride;
    std::int64_t f = 0;
    for (; f + lanes() <= block.value_features; f += lanes()) {  // x − x is 0 or NaN
      const VF x = hn::LoadU(DF(), row + f);
      worst = hn::Add(worst, hn::Sub(x, x));
    }
    for (; f < block.value_features; ++f) rest += row[f] - row[f];
  }
  block.is_finite = hn::AllTrue(DF(), hn::Eq(worst, hn::Zero(DF()))) && rest == 0.0f;
  return block.is_finite;
}

HWY_INLINE float weight_of(const Block& block, std::int64_t j, std::int64_t i) {
#if POSENC_OVERLAPS_16
  if (block.by_matrix) return weight_in_place(block.scores.data(), j, i);
#elif POSENC_MATRIX_16
  if (block.by_matrix) {
    const std::int64_t at = (j / kMatrixStep * block.width + i) * kMatrixStep + j % kMatrixStep;
    return sum_of_planes(block.operands.p.data() + at, kWeightPlanes, block.operands.p_plane);
  }
#endif
  return block.scores[static_cast<std::size_t>(j * block.width + i)];
}

// Skips masked keys one element at a time, for a tile with a masked value that is not finite: 0 times it is not 0.
void add_seen_values(Block& block, std::int64_t panel, std::int64_t first, std::int64_t count, std::int64_t begin,
                     std::int64_t end) {
  for (std::int64_t i = 0; i < count; ++i) {
    const KeyRange& key_range = block.job.key_range(block.b, first + i);
    for (std::int64_t j = begin; j < end; ++j) {
      const std::int64_t key = block.first_key + j;
      if (key < key_range.begin || key >= key_range.end || block.job.is_hidden(block.b, block.h, first + i, key))
        continue;
      const float weight = weight_of(block, j, i);
      float* sums = block.accumulator.data() + panel * block.value_features * block.width + i;
      for (std::int64_t f = 0; f < block.value_features; ++f) {
        sums[f * block.width] += weight * block.values[j * block.values_stride + f];
      }
    }
  }
}

// --- the two products -------------------------------------------------------------------------------------------

#if POSENC_MATRIX_16
// One product at a time, in f32, for q or k that has two planes and is not finite.
void score_by_element(Block& block, std::int64_t panel, std::int64_t begin, std::int64_t end) {
  const Operands16& o = block.operands;
  const std::int64_t width = block.width;
  for (std::int64_t j = begin; j < end; ++j) {
    const std::uint16_t* const key =
        o.k_at + j / kMatrixRows * kMatrixRows * o.depth + j % kMatrixRows * kMatrixDepth;
    for (std::int64_t i = 0; i < width; ++i) {
      const std::uint16_t* const query = o.q.data() + panel * o.q_panel + i * kMatrixStep;
      float sum = 0;
      for (std::int64_t f = 0; f < block.features; ++f) {
        const std::int64_t left = f / kMatrixDepth * kMatrixRows * kMatrixDepth + f % kMatrixDepth;
        const std::int64_t right = f / kMatrixStep * width * kMatrixStep + f % kMatrixStep;
        sum += sum_of_planes(key + left, o.k_planes, o.k_plane) * sum_of_planes(query + right, o.q_planes, o.q_plane);
      }
      block.scores[static_cast<std::size_t>(j * width + i)] = sum;
    }
  }
}
#endif

#if POSENC_MATRIX_16
// Applies the factor that the matrix unit's product still lacks.
void defer_scale(Block& block, std::int64_t begin, std::int64_t end) {
  block.factor = static_cast<float>(block.job.scale * kLog2E);
  if (block.factor > 0) return;  // otherwise the largest product would not be the largest score
  const VF by = hn::Set(DF(), block.factor);
  for (std::int64_t at = begin * block.width; at < end * block.width; at += lanes()) {
    hn::StoreU(hn::Mul(hn::LoadU(DF(), block.scores.data() + at), by), DF(), block.scores.data() + at);
  }
  block.factor = 1;
}
#endif

// S = Q Kᵀ for keys `begin` to `end` of the block, and a few around them to fill groups of rows.
void score_tile(Block& block, std::int64_t panel, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = block.width;
#if POSENC_MATRIX_16 && !POSENC_OVERLAPS_16
  if (block.by_matrix) {
    const Operands16& o = block.operands;
    Term16 terms[3];
    const bool are_all_finite = o.q_is_finite && o.k_is_finite;
    if (!are_all_finite) score_by_element(block, panel, begin, end);
    const std::int64_t first = begin / kMatrixRows, last = (end + kMatrixRows - 1) / kMatrixRows;
    for (std::int64_t g = first; are_all_finite && g < last; ++g) {
      const std::int64_t count = terms_of(o.k_at + g * kMatrixRows * o.depth, o.k_planes, o.k_plane,
                                          o.q.data() + panel * o.q_panel, o.q_planes, o.q_plane, terms);
      const auto cut = [&](Term16& term, const FeatureRange& features) HWY_ATTR {
        term = {term.left + features.begin * kMatrixRows, term.right + features.begin * width,
                features.end - features.begin};
      };
      if (o.k_planes > 1) cut(terms[1], o.k_lower);
      if (o.q_planes > 1) cut(terms[count - 1], o.q_lower);
      multiply_16<false>(terms, count, o.depth, block.scores.data() + g * kMatrixRows * width);
    }
    defer_scale(block, begin, end);
    return;
  }
#endif
  block.factor = 1;
  for (std::int64_t g = begin / kGroup; g * kGroup < end; ++g) {
    multiply<false>(block.k.data() + g * kGroup * block.features, kGroup,
                    block.q.data() + panel * block.features * width, block.features,
                    block.scores.data() + g * kGroup * width);
  }
}

// The range of P, in whole steps of the product with V.
HWY_INLINE std::int64_t step_before(const Block& block, std::int64_t key) {
#if POSENC_MATRIX_16
  if (block.by_matrix) return key / kMatrixDepth * kMatrixDepth;
#endif
  (void)block;
  return key;
}
HWY_INLINE std::int64_t step_after(const Block& block, std::int64_t key) {
#if POSENC_MATRIX_16
  if (block.by_matrix) return (key + kMatrixDepth - 1) / kMatrixDepth * kMatrixDepth;
#endif
  (void)block;
  return key;
}

void weigh_tile(Block& block, std::int64_t panel, std::int64_t begin, std::int64_t end, const float* base) {
#if POSENC_MATRIX_16 && !POSENC_OVERLAPS_16
  if (block.by_matrix) {
    const std::int64_t width = block.width, first = step_before(block, begin), last = step_after(block, end);
    float* const scores = block.scores.data();
    std::fill(scores + first * width, scores + begin * width, kNone);  // P = 0
    std::fill(scores + end * width, scores + last * width, kNone);
    weigh_16(scores, block.factor, base, first, last, block.operands.p.data(), block.operands.p_plane,
             block.row_sum.data() + panel * width);
    return;
  }
#endif
  weigh(block, panel, begin, end, base);
}

// O += P V.
void add_values(Block& block, std::int64_t panel, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = block.width;
  float* sums = block.accumulator.data() + panel * block.value_features * width;
#if POSENC_MATRIX_16 && !POSENC_OVERLAPS_16
  if (block.by_matrix) {
    const Operands16& o = block.operands;
    const std::int64_t first = step_before(block, begin), last = step_after(block, end);
    Term16 terms[3];
    for (std::int64_t f = 0; f < block.value_features; f += kMatrixRows) {
      const std::int64_t count = terms_of(o.v_at + f * kKeyBlock + first * kMatrixRows, o.v_planes, o.v_plane,
                                          o.p.data() + first * width, kWeightPlanes, o.p_plane, terms);
      multiply_16<true>(terms, count, last - first, sums + f * width);
    }
    return;
  }
#endif
  for (std::int64_t f = 0; f < block.value_features; f += kGroup) {
    multiply<true>(block.values + begin * block.values_stride + f, block.values_stride,
                   block.scores.data() + begin * width, end - begin, sums + f * width);
  }
}

// --- blocks ---------------------------------------------------------------------------------------------------

// Applies position and masks to a tile of scores and updates the row maximum; `base` as for renew_row_max. Returns
// whether its values may be multiplied with all weights, including those of masked keys.
bool prepare_tile(Block& block, const Tile& tile, const PanelRange& key_range, float* HWY_RESTRICT base) {
  const auto [panel, first, count, begin, end] = tile;
  HWY_ALIGN float tile_max[kMostWidth];
  float constant = 0;
  const bool has_vectors = block.bias.has_score_vectors();
  if (block.job.softcap > 0 && !has_vectors) cap_scores(block, begin, end);
  const bool has_edge = block.job.key_mask != nullptr || block.first_key + begin < key_range.all_begin ||
                        block.first_key + end > key_range.all_end;
  if (has_vectors) {
    add_vector_scores(block, panel, first, count, begin, end, tile_max);
    if (block.job.softcap > 0) {
      cap_scores(block, begin, end);
      find_row_max(block, begin, end, tile_max);
    }
  } else {
    constant = add_term(block, first, count, begin, end, !has_edge, tile_max);  // masks of an edge find the maximum
  }
  if (block.job.mask.data != nullptr) add_mask(block, first, count, begin, end, tile_max);
  if (has_edge) mask_keys(block, first, count, begin, end, tile_max);
  if (block.bias.counts_gates) add_contextual(block, panel, begin, end, tile_max);
  renew_row_max(block, panel, tile_max, constant, base);
  // keys that no query of the panel attends to, but that share a step with a visible one
  const bool has_others = step_before(block, begin) != begin ||
                          (step_after(block, end) != end && end != block.last_key - block.first_key);
  return !(has_edge || has_others || block.job.mask.data != nullptr) || values_are_finite(block);
}

void attend_tile(Block& block, std::int64_t panel, std::int64_t first, std::int64_t count,
                 const PanelRange& key_range) {
  const std::int64_t begin = std::max(key_range.begin - block.first_key, std::int64_t{0});
  const std::int64_t end = std::min(key_range.end, block.last_key) - block.first_key;
  if (begin >= end) return;
  HWY_ALIGN float base[kMostWidth];
  score_tile(block, panel, begin, end);
  const bool adds_products = prepare_tile(block, {panel, first, count, begin, end}, key_range, base);
  weigh_tile(block, panel, begin, end, base);
  if (block.bias.value_rows > 0) add_row_weights(block, panel, first, count, begin, end);
  if (adds_products) {
    add_values(block, panel, begin, end);
  } else {
    add_seen_values(block, panel, first, count, begin, end);
  }
}

#if POSENC_MATRIX_16
// Whether bf16 rows become operands as they are, or as `rotate` would round them.
HWY_INLINE bool can_copy(const Block& block, const HeadTensor<const void>& x, const RowRotation& rotation) {
  const bool is_there = x.feature_stride == 1 || rotation.cos_sin != nullptr;
  return is_there && block.features == block.operands.depth && block.features % 8 == 0;
}
#endif

void load_queries(Block& block) {
  const std::int64_t width = block.width, features = block.features;
  const auto factor = static_cast<float>(block.job.scale * kLog2E);
  for (std::int64_t first = block.begin, panel = 0; first < block.end; first += width, ++panel) {
    const std::int64_t count = std::min(width, block.end - first);
#if POSENC_MATRIX_16
    if (block.by_matrix && block.operands.q_planes == 1 && can_copy(block, block.job.q, block.job.q_rotation)) {
      std::uint16_t* const to = block.operands.q.data() + panel * block.operands.q_panel;
      if (block.job.q_rotation.cos_sin == nullptr) {
        copy_columns_16(block.job.q, block.b, block.h, first, first + count, to);
      } else {
        copy_columns_16(rotate_and_round(block.job.q, block.job.q_rotation, block.b, block.h, first, first + count,
                                         block.narrow.data()),
                        0, 0, 0, count, to);
      }
      continue;
    }
#endif
    load_rows(block.job.q, block.job.q_rotation, block.b, block.h, first, first + count, features, block.rows.data());
#if POSENC_MATRIX_16
    if (block.by_matrix) {
      Operands16& o = block.operands;
      pack_columns_16(block.rows.data(), count, features, o.depth, o.q_planes, o.q_plane,
                      o.q.data() + panel * o.q_panel);
      continue;
    }
#endif
    float* const q = block.q.data() + panel * features * width;
    pack_panel(block.rows.data(), count, features, factor, q);
    if (block.bias.query_rows > 0)
      score_vectors(block, panel, first, count, relative_queries_of(block, first, count, q));
  }
#if POSENC_MATRIX_16
  if (block.by_matrix) {
    Operands16& o = block.operands;
    o.q_is_finite = std::max(o.q_planes, o.k_planes) == 1 ||
                    all_finite(o.q.data(), (block.end - block.begin + width - 1) / width * o.q_panel);
  }
#endif
  std::fill(block.accumulator.begin(), block.accumulator.end(), 0.0f);
  std::fill(block.row_weights.begin(), block.row_weights.end(), 0.0f);
  std::fill(block.counts.begin(), block.counts.end(), 0.0f);
  std::fill(block.count_errors.begin(), block.count_errors.end(), 0.0f);
  // a sink is a score that every query has already processed, with a value of 0
  const float sink = block.job.sinks == nullptr ? kNone : static_cast<float>(block.job.sinks[block.h] * kLog2E);
  std::fill(block.row_sum.begin(), block.row_sum.end(), sink == kNone ? 0.0f : 1.0f);
  std::fill(block.row_max.begin(), block.row_max.end(), sink);
}

#if POSENC_MATRIX_16
// bf16 keys and values are read in place; others are first converted to rows of f32, then to two planes.
void load_keys_16(Block& block, std::int64_t g) {
  Operands16& o = block.operands;
  const AttentionJob& job = block.job;
  const std::int64_t first = block.first_key, last = block.last_key, keys = last - first;
  if (o.reuse_packed(block.b * job.k.heads + g, first, last)) return;
  if (o.k_planes == 1 && can_copy(block, job.k, job.k_rotation)) {
    if (job.k_rotation.cos_sin == nullptr) {
      copy_groups_16(job.k, block.b, g, first, last, o.k_at);
    } else {
      copy_groups_16(rotate_and_round(job.k, job.k_rotation, block.b, g, first, last, block.narrow.data()), 0, 0, 0,
                     keys, o.k_at);
    }
  } else {
    load_rows(job.k, job.k_rotation, block.b, g, first, last, block.features, block.rows.data());
    pack_groups_16(block.rows.data(), keys, block.features, o.depth, o.k_planes, o.k_plane, o.k_at);
  }
  o.k_is_finite = std::max(o.q_planes, o.k_planes) == 1 ||
                  all_finite(o.k_at, (keys + kMatrixRows - 1) / kMatrixRows * kMatrixRows * o.depth);
  if (o.blocks > 0) o.kept[static_cast<std::size_t>(first / o.keys)].is_finite = o.k_is_finite;
  if (o.v_planes == 1 && job.v.feature_stride == 1 && job.v.features == block.value_features) {
    const auto row = [&](std::int64_t j) {
      return j < keys ? job.v.row<std::uint16_t>(block.b, g, first + j) : nullptr;
    };
    pack_values_16(row, keys, block.value_features, o.v_planes, o.v_plane, o.v_at);
  } else {
    pack_rows(job.v, block.b, g, first, last, block.value_features, block.v.data());
    const auto row = [&](std::int64_t j) {
      return j < keys ? static_cast<const float*>(block.v.data()) + j * block.value_features : nullptr;
    };
    pack_values_16(row, keys, block.value_features, o.v_planes, o.v_plane, o.v_at);
  }
}
#endif

void load_keys(Block& block, std::int64_t first, std::int64_t last) {
  const std::int64_t g = block.h / block.job.group;
  block.first_key = first;
  block.last_key = last;
  block.is_checked = false;
#if POSENC_MATRIX_16
  if (block.by_matrix) {
    load_keys_16(block, g);
    return;
  }
#endif
  if (block.job.k_rotation.cos_sin == nullptr && block.job.k.pages == nullptr) {
    pack_groups(block.job.k, block.b, g, first, last, block.k.data());
  } else {
    load_rows(block.job.k, block.job.k_rotation, block.b, g, first, last, block.features, block.rows.data());
    HeadTensor<const void> rows;
    rows.data = block.rows.data();
    rows.features = rows.token_stride = block.features;
    pack_groups(rows, 0, 0, 0, last - first, block.k.data());
  }
  if (block.v_in_place) {
    block.values = block.job.v.row<float>(block.b, g, first);
    block.values_stride = block.job.v.token_stride;
  } else {
    pack_rows(block.job.v, block.b, g, first, last, block.value_features, block.v.data());
    block.values = block.v.data();
    block.values_stride = block.value_features;
  }
}

// Writes sums / row_sum for up to one vector of queries, as rows.
void finish_rows(Block& block, std::int64_t first, std::int64_t count) {
  const std::int64_t width = block.width, features = block.job.v.features;
  const std::int64_t panel = (first - block.begin) / width, lane = (first - block.begin) % width;
  const float* const sums = block.accumulator.data() + panel * block.value_features * width + lane;
  HWY_ALIGN float by[kMostLanes] = {};
  for (std::int64_t i = 0; i < lanes(); ++i) {
    const float total = block.row_sum[static_cast<std::size_t>(first - block.begin + i)];
    by[i] = total == 0.0f ? 0.0f : 1.0f / total;
  }
#if POSENC_MATRIX_16
  columns_as_rows(sums, width, by, features, block.results.data(), features);
#else
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t f = 0; f < features; ++f) {
      block.results[static_cast<std::size_t>(i * features + f)] = sums[f * width + i] * by[i];
    }
  }
#endif
  for (std::int64_t i = 0; i < count; ++i) {  // 0 without a visible key, whatever the sums
    float* const row = block.results.data() + i * features;
    if (by[i] == 0.0f) std::fill(row, row + features, 0.0f);
  }
}

void write_results(Block& block) {
  const std::int64_t features = block.job.v.features;
  kernels::with_type(block.job.out.type, [&](auto kind) HWY_ATTR {
    using T = decltype(kind);
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      const std::int64_t lane = (i - block.begin) % lanes();
      if (lane == 0) finish_rows(block, i, std::min(lanes(), block.end - i));
      const float* const row = block.results.data() + lane * features;
      T* out = block.job.out.template row<T>(block.b, block.h, i);
      std::int64_t f = 0;
      if constexpr (!std::is_same_v<T, double>) {
        if (block.job.out.feature_stride == 1) {
#if POSENC_OVERLAPS_16
          if constexpr (std::is_same_v<T, BFloat16>) {  // processors with AMX have an instruction that rounds
            auto* const rounded = reinterpret_cast<convert::RoundedBFloat16*>(out);
            for (; block.by_matrix && f + lanes() <= features; f += lanes()) {
              convert::store_as(DF(), hn::LoadU(DF(), row + f), rounded + f);
            }
          }
#endif
          for (; f + lanes() <= features; f += lanes()) convert::store_as(DF(), hn::LoadU(DF(), row + f), out + f);
        }
      }
      for (; f < features; ++f) {
        out[f * block.job.out.feature_stride] = numerics::narrow<T>(static_cast<double>(row[f]));
      }
      if (block.job.logsumexp.data == nullptr) continue;
      const float total = block.row_sum[static_cast<std::size_t>(i - block.begin)];
      const double sum = std::log2(static_cast<double>(total));  // −inf without a visible key
      const auto largest = static_cast<double>(block.row_max[static_cast<std::size_t>(i - block.begin)]);
      *block.job.logsumexp.template row<float>(block.b, block.h, i) =
          static_cast<float>(total == 0.0f ? sum : (largest + sum) / kLog2E);
    }
  });
}

#if POSENC_OVERLAPS_16
// The stages of a tile that attend_overlapped calls.
struct Stages {
  Block& block;
  const PanelRange* key_ranges;

  void load_block(std::int64_t first, std::int64_t last) const { load_keys(block, first, last); }
  void score(const Tile& tile) const { score_by_element(block, tile.panel, tile.begin, tile.end); }
  bool guess(const Tile& tile, float* HWY_RESTRICT base) const {
    const PanelRange& key_range = key_ranges[tile.panel];
    const auto* const slopes = std::get_if<terms::SlopeTiles>(&block.bias.tiles);
    const bool is_plain = (slopes != nullptr || std::holds_alternative<terms::NoTiles>(block.bias.tiles)) &&
                          block.job.softcap == 0 && !block.job.has_masks();
    const bool has_edge =
        block.first_key + tile.begin < key_range.all_begin || block.first_key + tile.end > key_range.all_end;
    const bool has_whole_steps = tile.begin % kMatrixDepth == 0 && tile.end % kMatrixDepth == 0;
    if (!is_plain || has_edge || !has_whole_steps || !(block.job.scale > 0)) return false;
    const float* const row_max = block.row_max.data() + tile.panel * block.width;
    const DF d;
    const VF most = load(row_max, 0);
    if (!hn::AllTrue(d, hn::Ne(most, hn::Set(d, kNone)))) return false;
    defer_scale(block, tile.begin, tile.end);
    store(most, base, 0);
    if (slopes == nullptr) return true;
    const std::int64_t ahead = key_range.diagonal + block.job.places.shift - block.first_key;  // of the first query
    return key_range.is_row && terms::HWY_NAMESPACE::split_slope(*slopes, block.h, ahead, block.width, tile.begin,
                                                                 tile.end, block.slope, base);
  }
  bool prepare(const Tile& tile, float* base) const {
    block.slope = 0;
    defer_scale(block, tile.begin, tile.end);
    return prepare_tile(block, tile, key_ranges[tile.panel], base);
  }
  void add_seen(const Tile& tile) const {
    add_seen_values(block, tile.panel, tile.first, tile.count, tile.begin, tile.end);
  }
};
#endif

void attend_block(Block& block) {
  load_queries(block);
  PanelRange key_ranges[kLargeQueryBlock / kPanelVectors];
  std::int64_t panels = 0, begin = std::numeric_limits<std::int64_t>::max(), end = 0;
  for (std::int64_t first = block.begin; first < block.end; first += block.width, ++panels) {
    key_ranges[panels] = key_range_of(block, first, std::min(block.width, block.end - first));
    if (key_ranges[panels].begin == key_ranges[panels].end) continue;
    begin = std::min(begin, key_ranges[panels].begin);
    end = std::max(end, key_ranges[panels].end);
  }
#if POSENC_OVERLAPS_16
  if (block.by_matrix) {
    attend_overlapped(block, key_ranges, panels, begin, end, Stages{block, key_ranges});
    write_results(block);
    return;
  }
#endif
  const std::int64_t key_blocks = end > begin ? (end - begin + block.keys - 1) / block.keys : 0;
  for (std::int64_t at = 0; at < key_blocks; ++at) {
    const std::int64_t key = begin + (block.bias.counts_gates ? key_blocks - 1 - at : at) * block.keys;
    load_keys(block, key, std::min(key + block.keys, end));
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      const std::int64_t first = block.begin + panel * block.width;
      attend_tile(block, panel, first, std::min(block.width, block.end - first), key_ranges[panel]);
    }
  }
  for (std::int64_t panel = 0; panel < panels && block.bias.value_rows > 0; ++panel) add_value_vectors(block, panel);
  write_results(block);
}

void blocks(const AttentionJob& job, const ScoreBias& bias, std::int64_t begin, std::int64_t end) {
  Block block(job, bias, end - begin > 1);
  if (kernels::counter_in_use() != nullptr) {  // only count the memory
    kernels::take_and_give(rotation_scratch(job));
    return;
  }
#if POSENC_MATRIX_16
  const UseMatrixUnit unit(block.by_matrix);
#endif
  const std::int64_t per_head = (job.q.sequence + block.queries - 1) / block.queries;
  for (std::int64_t at = begin; at < end; ++at) {
    block.b = at / per_head / job.q.heads;
    block.h = at / per_head % job.q.heads;
    block.begin = at % per_head * block.queries;
    block.end = std::min(block.begin + block.queries, job.q.sequence);
    attend_block(block);
  }
}

std::int64_t queries_of(const AttentionJob& job, const ScoreBias& bias) {
  return queries_of_block(job, is_for_matrix_unit(job, bias));
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::attend::cpu {

HWY_EXPORT(blocks);
HWY_EXPORT(queries_of);
void attend_by_blocks(const AttentionJob& job, const ScoreBias& bias) {
  const std::int64_t queries = HWY_DYNAMIC_DISPATCH(queries_of)(job, bias);
  const std::int64_t per_head = (job.q.sequence + queries - 1) / queries;
  // If there are enough heads for all threads, each thread should keep the packed keys of one head.
  const bool has_many = job.q.batch * job.q.heads / job.group >= 4 * std::int64_t{threads()};
  const std::int64_t grain = has_many && size_of(job.out.type) == 2 ? per_head * job.group : 1;
  kernels::cpu::parallel_for(job.q.batch * job.q.heads * per_head, grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(blocks)(job, bias, begin, end);
  });
}

}  // namespace posenc::attend::cpu
#endif
