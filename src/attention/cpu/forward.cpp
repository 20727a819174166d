// The forward pass of FlashAttention (Dao et al., 2022; the loop order of FlashAttention-2, Dao, 2023) on a CPU, with
// position inside. One thread owns a query block. For each key block j it computes the tile of scores
// S = scale · Q K_jᵀ + bias, updates the online softmax (row_max is m, row_sum is l), rescales the output accumulator
// by 2^(m_old − m_new), adds P V_j, and drops the tile; O = accumulator / l at the end, logsumexp = m + log l. Scores
// are in units of log 2, so that softmax needs 2^x alone. Q and K are rotated as they are loaded; key blocks that no
// query of the block sees are skipped; only tiles that a mask's edge crosses are masked.

#include <cmath>
#include <limits>

#include "attention/bias_element.h"
#include "attention/cpu/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/forward.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// after foreach_target.h, so that they are compiled for each target
#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/pack-inl.h"
#include "attention/cpu/panel-inl.h"
#include "attention/cpu/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One block of queries at work.
struct Block {
  const AttentionJob& job;
  const ScoreBias& bias;
  std::int64_t width = panel_width();
  std::int64_t features = job.q.features;
  std::int64_t value_features = (job.v.features + kGroup - 1) / kGroup * kGroup;
  // v can be read where it is: no copy
  bool v_in_place = job.v.type == DataType::kF32 && job.v.feature_stride == 1 && job.v.features % kGroup == 0 &&
                    job.v.pages == nullptr;
  AlignedVector<float> q = AlignedVector<float>(static_cast<std::size_t>(kQueryBlock * features));  // panels
  AlignedVector<float> accumulator =
      AlignedVector<float>(static_cast<std::size_t>(kQueryBlock * value_features));  // panels
  AlignedVector<float> row_max = AlignedVector<float>(kQueryBlock), row_sum = AlignedVector<float>(kQueryBlock);
  AlignedVector<float> k = AlignedVector<float>(static_cast<std::size_t>(kKeyBlock * features));            // groups
  AlignedVector<float> v = AlignedVector<float>(static_cast<std::size_t>(kKeyBlock * value_features));      // rows
  AlignedVector<float> scores = AlignedVector<float>(static_cast<std::size_t>(kKeyBlock * kMostWidth));     // a panel
  AlignedVector<float> bias_tile = AlignedVector<float>(static_cast<std::size_t>(kKeyBlock * kMostWidth));  // biases
  AlignedVector<float> rows = AlignedVector<float>(static_cast<std::size_t>(kKeyBlock * features));
  AlignedVector<float> met;  // [panels, rows, width]: queries times the vectors that distances pick

  std::int64_t b = 0, h = 0, begin = 0, end = 0;  // the queries
  std::int64_t first_key = 0, last_key = 0;       // the key block
  const float* values = nullptr;                  // of the key block
  std::int64_t values_stride = 0;
  bool is_checked = false, is_finite = true;  // its values, looked at only where some are masked

  Block(const AttentionJob& a_job, const ScoreBias& a_bias) : job(a_job), bias(a_bias) {
    met.resize(static_cast<std::size_t>(kQueryBlock * bias.query_rows));
  }
};

// What the queries of a panel see together.
struct PanelSight {
  std::int64_t begin, end;          // some see these keys
  std::int64_t all_begin, all_end;  // all see these
  std::int64_t beside;              // of the first query
  bool is_row;                      // queries stand beside consecutive keys
};
HWY_INLINE PanelSight sight_of(const Block& block, std::int64_t first, std::int64_t count) {
  const Sight& start = block.job.sight(block.b, first);
  PanelSight panel{start.begin, start.end, start.begin, start.end, start.beside, true};
  bool is_any = start.begin < start.end;
  for (std::int64_t i = 1; i < count; ++i) {
    const Sight& sight = block.job.sight(block.b, first + i);
    panel.all_begin = std::max(panel.all_begin, sight.begin);
    panel.all_end = std::min(panel.all_end, sight.end);
    if (sight.beside != start.beside + i) panel.is_row = false;
    if (sight.begin == sight.end) continue;
    panel.begin = is_any ? std::min(panel.begin, sight.begin) : sight.begin;
    panel.end = is_any ? std::max(panel.end, sight.end) : sight.end;
    is_any = true;
  }
  if (!is_any) panel.begin = panel.end = 0;
  return panel;
}

// --- a tile of scores: bias and mask -----------------------------------------------------------------------------

// score = at(key, vector, score), and the largest of each query.
template <class At> HWY_INLINE void change_scores(Block& block, std::int64_t begin, std::int64_t end,
                                                  float* HWY_RESTRICT tile_max, const At& at) {
  VF most0 = hn::Set(DF(), kNone), most1 = most0, most2 = most0;
  float* HWY_RESTRICT s = block.scores.data() + begin * block.width;
  for (std::int64_t j = begin; j < end; ++j, s += block.width) {
    const VF s0 = at(j, 0, load(s, 0)), s1 = at(j, 1, load(s, 1)), s2 = at(j, 2, load(s, 2));
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
}

void find_row_max(const Block& block, std::int64_t begin, std::int64_t end, float* HWY_RESTRICT tile_max) {
  VF most0 = hn::Set(DF(), kNone), most1 = most0, most2 = most0;
  const float* HWY_RESTRICT s = block.scores.data() + begin * block.width;
  for (std::int64_t j = begin; j < end; ++j, s += block.width) {
    most0 = hn::Max(most0, load(s, 0));
    most1 = hn::Max(most1, load(s, 1));
    most2 = hn::Max(most2, load(s, 2));
  }
  store(most0, tile_max, 0);
  store(most1, tile_max, 1);
  store(most2, tile_max, 2);
}

// −slope · |distance|: the distance is exact in f32 up to 2^24, and the sum is rounded once.
void add_slopes(Block& block, std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t end,
                float* HWY_RESTRICT tile_max) {
  HWY_ALIGN float distance[kMostWidth] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t beside = block.job.sight(block.b, first + i).beside + block.job.places.shift;
    distance[i] = static_cast<float>(beside - block.first_key);
  }
  const VF x0 = load(distance, 0), x1 = load(distance, 1), x2 = load(distance, 2);
  const VF slope = hn::Set(DF(), block.bias.slopes[static_cast<std::size_t>(block.h)]);
  change_scores(block, begin, end, tile_max, [&](std::int64_t j, int vector, VF s) HWY_ATTR {
    const VF x = vector == 0 ? x0 : vector == 1 ? x1 : x2;
    return hn::MulAdd(slope, hn::Abs(hn::Sub(x, hn::Set(DF(), static_cast<float>(j)))), s);
  });
}

// A slice of the table for each key, or one number where the whole tile lies in a tail: returned, not added.
float add_distances(Block& block, const PanelSight& sight, std::int64_t begin, std::int64_t end,
                    float* HWY_RESTRICT tile_max) {
  const DistanceRow& row = block.bias.rows[static_cast<std::size_t>(block.h)];
  const std::int64_t x = sight.beside + block.job.places.shift - block.first_key;  // of the first query and key
  const std::int64_t low = x - (end - 1), high = x + block.width - 1 - begin;
  if (high <= row.low || low >= row.high) {
    find_row_max(block, begin, end, tile_max);
    return high <= row.low ? row.at(row.low) : row.at(row.high);
  }
  const float* HWY_RESTRICT at = row.values.data() + (x - row.first);
  change_scores(block, begin, end, tile_max,
                [&](std::int64_t j, int vector, VF s) HWY_ATTR { return hn::Add(s, load(at - j, vector)); });
  return 0.0f;
}

void add_vectors(Block& block, std::int64_t panel, std::int64_t first, std::int64_t count, std::int64_t begin,
                 std::int64_t end) {
  const auto& vectors = std::get<DistanceVectors>(block.job.bias->source);
  const std::int64_t width = block.width, rows = block.bias.query_rows, features = block.features;
  const float* met = block.met.data() + panel * rows * width;
  for (std::int64_t j = begin; j < end; ++j) {
    float* tile = block.bias_tile.data() + j * width;
    const std::int64_t key = block.first_key + j;
    std::int64_t row_before = -1;
    float key_part = 0;
    if (block.bias.key_rows > 0) {
      load_rows(block.job.k, block.job.k_rotation, block.b, block.h / block.job.group, key, key + 1, features,
                block.rows.data());
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t delta = block.job.distance(block.b, first + i, key, 0);
      float sum = 0;
      if (rows > 0) sum = met[entry_of(vectors.for_queries.rows, delta) * width + i];
      if (block.bias.key_rows > 0) {
        const std::int64_t row = entry_of(vectors.for_keys.rows, delta);
        if (row != row_before) {  // a tail has one row for many queries
          const float* picked = block.bias.key_vectors.data() + (block.h * block.bias.key_rows + row) * features;
          key_part = 0;
          for (std::int64_t f = 0; f < features; ++f) key_part += block.rows[static_cast<std::size_t>(f)] * picked[f];
          row_before = row;
        }
        sum += key_part;
      }
      tile[i] = sum;
    }
  }
}

void add_tile(Block& block, std::int64_t panel, std::int64_t first, std::int64_t count, std::int64_t begin,
              std::int64_t end, float* HWY_RESTRICT tile_max) {
  const std::int64_t width = block.width;
  if (std::holds_alternative<DistanceVectors>(block.job.bias->source)) {
    add_vectors(block, panel, first, count, begin, end);
  } else {
    fill_tile(block.job, {block.b, block.h, first, count, block.first_key + begin, end - begin},
              block.bias_tile.data() + begin * width, width, 1);
  }
  const float* HWY_RESTRICT tile = block.bias_tile.data();
  change_scores(block, begin, end, tile_max, [&](std::int64_t j, int vector, VF s) HWY_ATTR {
    return hn::Add(s, load(tile + j * width, vector));
  });
}

// c · tanh(score / c), before anything is added to the scores.
void cap_scores(Block& block, std::int64_t begin, std::int64_t end) {
  const auto cap = static_cast<float>(block.job.softcap * kLog2E);
  float* HWY_RESTRICT s = block.scores.data() + begin * block.width;
  for (std::int64_t j = begin; j < end; ++j, s += block.width) {
    store(cap_of(DF(), load(s, 0), cap), s, 0);
    store(cap_of(DF(), load(s, 1), cap), s, 1);
    store(cap_of(DF(), load(s, 2), cap), s, 2);
  }
}

// The caller's mask: added, or −inf in place of a score that it hides, whatever that was.
void add_mask(Block& block, std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t end,
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

bool has_padding(const Block& block, std::int64_t j) {
  const AttentionJob& job = block.job;
  return job.key_mask != nullptr && job.key_mask[block.b * job.k.sequence + block.first_key + j] == 0;
}

// −inf where a query does not see a key.
void mask_keys(Block& block, std::int64_t first, std::int64_t count, std::int64_t begin, std::int64_t end,
               float* HWY_RESTRICT tile_max) {
  HWY_ALIGN float from[kMostWidth] = {}, to[kMostWidth] = {};  // in the tile; none for columns past the last query
  for (std::int64_t i = 0; i < count; ++i) {
    const Sight& sight = block.job.sight(block.b, first + i);
    from[i] = static_cast<float>(std::clamp(sight.begin - block.first_key, std::int64_t{0}, kKeyBlock));
    to[i] = static_cast<float>(std::clamp(sight.end - block.first_key, std::int64_t{0}, kKeyBlock));
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

// --- online softmax and the output accumulator -------------------------------------------------------------------

HWY_INLINE VF safe(VF row_max) {  // nothing seen yet: −inf − −inf would be NaN
  return hn::IfThenElse(hn::Eq(row_max, hn::Set(DF(), kNone)), hn::Zero(DF()), row_max);
}

// One step of the online softmax: the tile's scores S become P = 2^(S − m) with the new row maximum m, and row_sum
// and the output accumulator are rescaled to it. `constant` is a bias that the whole tile shares and that is not in S
// yet.
void online_softmax(Block& block, std::int64_t panel, std::int64_t begin, std::int64_t end,
                    float* HWY_RESTRICT tile_max, float constant) {
  const DF d;
  const std::int64_t width = block.width;
  float* HWY_RESTRICT row_max = block.row_max.data() + panel * width;
  float* HWY_RESTRICT row_sum = block.row_sum.data() + panel * width;
  const VF shift = hn::Set(d, constant);
  const VF o0 = load(row_max, 0), o1 = load(row_max, 1), o2 = load(row_max, 2);
  const VF n0 = hn::Max(o0, hn::Add(load(tile_max, 0), shift));
  const VF n1 = hn::Max(o1, hn::Add(load(tile_max, 1), shift));
  const VF n2 = hn::Max(o2, hn::Add(load(tile_max, 2), shift));
  store(n0, row_max, 0);
  store(n1, row_max, 1);
  store(n2, row_max, 2);
  const VF m0 = safe(n0), m1 = safe(n1), m2 = safe(n2);
  const auto same = hn::And(hn::And(hn::Eq(o0, n0), hn::Eq(o1, n1)), hn::Eq(o2, n2));
  if (!hn::AllTrue(d, same)) {
    const VF a0 = exp2_of_negative(d, hn::Sub(o0, m0)), a1 = exp2_of_negative(d, hn::Sub(o1, m1)),
             a2 = exp2_of_negative(d, hn::Sub(o2, m2));
    store(hn::Mul(load(row_sum, 0), a0), row_sum, 0);
    store(hn::Mul(load(row_sum, 1), a1), row_sum, 1);
    store(hn::Mul(load(row_sum, 2), a2), row_sum, 2);
    float* HWY_RESTRICT accumulator = block.accumulator.data() + panel * block.value_features * width;
    for (std::int64_t f = 0; f < block.value_features; ++f, accumulator += width) {
      store(hn::Mul(load(accumulator, 0), a0), accumulator, 0);
      store(hn::Mul(load(accumulator, 1), a1), accumulator, 1);
      store(hn::Mul(load(accumulator, 2), a2), accumulator, 2);
    }
  }
  const VF x0 = hn::Sub(m0, shift), x1 = hn::Sub(m1, shift), x2 = hn::Sub(m2, shift);
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

// Where a masked value is not finite, 0 times it is not 0: leaves out what is masked, one element at a time.
void add_seen_values(Block& block, std::int64_t panel, std::int64_t first, std::int64_t count, std::int64_t begin,
                     std::int64_t end) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Sight& sight = block.job.sight(block.b, first + i);
    for (std::int64_t j = begin; j < end; ++j) {
      const std::int64_t key = block.first_key + j;
      if (key < sight.begin || key >= sight.end || block.job.is_hidden(block.b, block.h, first + i, key)) continue;
      const float weight = block.scores[static_cast<std::size_t>(j * block.width + i)];
      float* sums = block.accumulator.data() + panel * block.value_features * block.width + i;
      for (std::int64_t f = 0; f < block.value_features; ++f) {
        sums[f * block.width] += weight * block.values[j * block.values_stride + f];
      }
    }
  }
}

// --- blocks ---------------------------------------------------------------------------------------------------

void attend_tile(Block& block, std::int64_t panel, std::int64_t first, std::int64_t count, const PanelSight& sight) {
  const std::int64_t width = block.width;
  const std::int64_t begin = std::max(sight.begin - block.first_key, std::int64_t{0});
  const std::int64_t end = std::min(sight.end, block.last_key) - block.first_key;
  if (begin >= end) return;
  for (std::int64_t g = begin / kGroup; g * kGroup < end; ++g) {
    multiply<false>(block.k.data() + g * kGroup * block.features, kGroup,
                    block.q.data() + panel * block.features * width, block.features,
                    block.scores.data() + g * kGroup * width);
  }
  HWY_ALIGN float tile_max[kMostWidth];
  float constant = 0;
  const bool has_vectors = block.bias.query_rows > 0 || block.bias.key_rows > 0;
  if (block.job.softcap > 0 && !has_vectors) cap_scores(block, begin, end);
  using Kind = ScoreBias::Kind;
  if (block.bias.kind == Kind::kNone) {
    find_row_max(block, begin, end, tile_max);
  } else if (block.bias.kind == Kind::kSlope) {
    add_slopes(block, first, count, begin, end, tile_max);
  } else if (block.bias.kind == Kind::kDistance && sight.is_row) {
    constant = add_distances(block, sight, begin, end, tile_max);
  } else {
    add_tile(block, panel, first, count, begin, end, tile_max);
    if (block.job.softcap > 0 && has_vectors) {
      cap_scores(block, begin, end);
      find_row_max(block, begin, end, tile_max);
    }
  }
  const bool has_edge = block.job.key_mask != nullptr || block.first_key + begin < sight.all_begin ||
                        block.first_key + end > sight.all_end;
  if (block.job.mask.data != nullptr) add_mask(block, first, count, begin, end, tile_max);
  if (has_edge) mask_keys(block, first, count, begin, end, tile_max);
  online_softmax(block, panel, begin, end, tile_max, constant);
  if ((has_edge || block.job.mask.data != nullptr) && !values_are_finite(block)) {
    add_seen_values(block, panel, first, count, begin, end);
    return;
  }
  float* sums = block.accumulator.data() + panel * block.value_features * width;
  for (std::int64_t f = 0; f < block.value_features; f += kGroup) {
    multiply<true>(block.values + begin * block.values_stride + f, block.values_stride,
                   block.scores.data() + begin * width, end - begin, sums + f * width);
  }
}

void load_queries(Block& block) {
  const std::int64_t width = block.width, features = block.features;
  const auto factor = static_cast<float>(block.job.scale * kLog2E);
  for (std::int64_t first = block.begin, panel = 0; first < block.end; first += width, ++panel) {
    float* const q = block.q.data() + panel * features * width;
    const std::int64_t count = std::min(width, block.end - first);
    load_rows(block.job.q, block.job.q_rotation, block.b, block.h, first, first + count, features, block.rows.data());
    pack_panel(block.rows.data(), count, features, factor, q);
    for (std::int64_t row = 0; row < block.bias.query_rows; ++row) {
      const float* picked = block.bias.query_vectors.data() + (block.h * block.bias.query_rows + row) * features;
      VF m0 = hn::Zero(DF()), m1 = m0, m2 = m0;
      for (std::int64_t f = 0; f < features; ++f) {
        const VF by = hn::Set(DF(), picked[f]);
        m0 = hn::MulAdd(by, load(q + f * width, 0), m0);
        m1 = hn::MulAdd(by, load(q + f * width, 1), m1);
        m2 = hn::MulAdd(by, load(q + f * width, 2), m2);
      }
      float* const met = block.met.data() + (panel * block.bias.query_rows + row) * width;
      store(m0, met, 0);
      store(m1, met, 1);
      store(m2, met, 2);
    }
  }
  std::fill(block.accumulator.begin(), block.accumulator.end(), 0.0f);
  // a sink is a score that every query has met already, and whose value is 0
  const float sink = block.job.sinks == nullptr ? kNone : static_cast<float>(block.job.sinks[block.h] * kLog2E);
  std::fill(block.row_sum.begin(), block.row_sum.end(), sink == kNone ? 0.0f : 1.0f);
  std::fill(block.row_max.begin(), block.row_max.end(), sink);
}

void load_keys(Block& block, std::int64_t first, std::int64_t last) {
  const std::int64_t g = block.h / block.job.group;
  block.first_key = first;
  block.last_key = last;
  block.is_checked = false;
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

void write_results(Block& block) {
  const std::int64_t width = block.width;
  kernels::with_type(block.job.out.type, [&](auto kind) HWY_ATTR {
    using T = decltype(kind);
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      const std::int64_t panel = (i - block.begin) / width, lane = (i - block.begin) % width;
      const float total = block.row_sum[static_cast<std::size_t>(i - block.begin)];
      const float by = total == 0.0f ? 0.0f : 1.0f / total;
      const float* sums = block.accumulator.data() + panel * block.value_features * width + lane;
      T* out = block.job.out.template row<T>(block.b, block.h, i);
      for (std::int64_t f = 0; f < block.job.v.features; ++f) {
        const float value = total == 0.0f ? 0.0f : sums[f * width] * by;
        out[f * block.job.out.feature_stride] = numerics::narrow<T>(static_cast<double>(value));
      }
      if (block.job.logsumexp.data == nullptr) continue;
      const double sum = std::log2(static_cast<double>(total));  // −inf where nothing is seen
      const auto largest = static_cast<double>(block.row_max[static_cast<std::size_t>(i - block.begin)]);
      *block.job.logsumexp.template row<float>(block.b, block.h, i) =
          static_cast<float>(total == 0.0f ? sum : (largest + sum) / kLog2E);
    }
  });
}

void attend_block(Block& block) {
  load_queries(block);
  PanelSight sights[kQueryBlock];
  std::int64_t panels = 0, begin = std::numeric_limits<std::int64_t>::max(), end = 0;
  for (std::int64_t first = block.begin; first < block.end; first += block.width, ++panels) {
    sights[panels] = sight_of(block, first, std::min(block.width, block.end - first));
    if (sights[panels].begin == sights[panels].end) continue;
    begin = std::min(begin, sights[panels].begin);
    end = std::max(end, sights[panels].end);
  }
  for (std::int64_t key = begin; key < end; key += kKeyBlock) {
    load_keys(block, key, std::min(key + kKeyBlock, end));
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      const std::int64_t first = block.begin + panel * block.width;
      attend_tile(block, panel, first, std::min(block.width, block.end - first), sights[panel]);
    }
  }
  write_results(block);
}

void blocks(const AttentionJob& job, const ScoreBias& bias, std::int64_t begin, std::int64_t end) {
  Block block(job, bias);
  if (kernels::counter_in_use() != nullptr) {  // only memory is asked for
    kernels::take_and_give(rotation_scratch(job));
    return;
  }
  const std::int64_t per_head = (job.q.sequence + kQueryBlock - 1) / kQueryBlock;
  for (std::int64_t at = begin; at < end; ++at) {
    block.b = at / per_head / job.q.heads;
    block.h = at / per_head % job.q.heads;
    block.begin = at % per_head * kQueryBlock;
    block.end = std::min(block.begin + kQueryBlock, job.q.sequence);
    attend_block(block);
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::attend::cpu {

HWY_EXPORT(blocks);
void attend_blocks(const AttentionJob& job, const ScoreBias& bias, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(blocks)(job, bias, begin, end);
}

}  // namespace posenc::attend::cpu
#endif
