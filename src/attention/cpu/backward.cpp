// The backward pass of FlashAttention (Dao et al., 2022) on a CPU: no tile of P is stored; each is recomputed from Q,
// K and the forward pass's logsumexp, and dS = P ∘ (dP − D) with dP = dO Vᵀ and D = rowsum(dO ∘ O) (`deltas`). There
// are two passes over the tiles: one with a query block in the lanes accumulates dQ = dS K and the gradients of the
// position's parameters, one with a key block in the lanes accumulates dK = dSᵀ Q and dV = Pᵀ dO. So every
// accumulator belongs to one thread, without atomics, and results do not depend on the number of threads.

#include "attention/cpu/backward.h"

#include <cmath>
#include <limits>

#include "attention/content_terms.h"
#include "attention/cpu/score_bias.h"
#include "attention/cpu/tiles.h"
#include "attention/reference/rows.h"
#include "kernels/cpu/parallel.h"
#include "terms/all.h"
#include "terms/terms.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/backward.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// after foreach_target.h, so that they are compiled for each target
#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/pack-inl.h"
#include "attention/cpu/panel-inl.h"
#include "attention/cpu/tanh-inl.h"
#include "terms/all-inl.h"

#ifndef POSENC_BACKWARD_ONCE
#define POSENC_BACKWARD_ONCE
namespace posenc::attend::cpu {

using Floats = std::vector<float>;
inline Floats floats(std::int64_t count) { return Floats(static_cast<std::size_t>(count)); }

// What both passes need for every query: its logsumexp in units of log 2, and D = Σ dO · O.
struct QuerySums {
  Floats logs, deltas;  // [batch, heads, queries]
};

struct BackwardWork {
  BackwardJob& job;
  const ScoreBias& bias;
  const QuerySums& sums;
};

}  // namespace posenc::attend::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using terms::Lanes;

constexpr std::int64_t kLaneBlock = kQueryBlock;  // tokens in the lanes of panels
constexpr std::int64_t kRowBlock = kKeyBlock;     // tokens in rows

HWY_INLINE std::int64_t whole_groups(std::int64_t features) { return (features + kGroup - 1) / kGroup * kGroup; }

// Rows of a tensor in the three layouts that the products need.
struct LaneRows {  // panels [panel, feature, lane]
  std::int64_t features = 0;
  Floats panels;
  explicit LaneRows(std::int64_t a_features) : features(a_features), panels(floats(kLaneBlock * a_features)) {}
  const float* panel(std::int64_t at) const { return panels.data() + at * features * panel_width(); }
};
struct TileRows {  // [row, features] padded to whole groups, and groups [group, feature, row]
  std::int64_t features = 0, stride = 0;
  Floats rows, groups;
  explicit TileRows(std::int64_t a_features)
      : features(a_features),
        stride(whole_groups(a_features)),
        rows(floats(kRowBlock * stride)),
        groups(floats(kRowBlock * a_features)) {}
};

void load_lanes(LaneRows& to, const HeadTensor<const void>& x, const RowRotation& rotation, const TilePlace& at,
                float factor, Floats& scratch) {
  const std::int64_t width = panel_width();
  for (std::int64_t first = 0; first < at.queries; first += width) {
    const std::int64_t begin = at.first_query + first, count = std::min(width, at.queries - first);
    load_rows(x, rotation, at.b, at.h, begin, begin + count, to.features, scratch.data());
    pack_panel(scratch.data(), count, to.features, factor, to.panels.data() + first * to.features);
  }
}
void load_tile(TileRows& to, const HeadTensor<const void>& x, const RowRotation& rotation, std::int64_t b,
               std::int64_t h, std::int64_t begin, std::int64_t end) {
  load_rows(x, rotation, b, h, begin, end, to.stride, to.rows.data());
  HeadTensor<const void> rows;
  rows.data = to.rows.data();
  rows.features = to.features;
  rows.token_stride = to.stride;
  pack_groups(rows, 0, 0, 0, end - begin, to.groups.data());
}
// Rows of a tile; `from` is the start of a group.
struct RowRange {
  std::int64_t from = 0, to = 0;
  std::int64_t count() const { return to - from; }
};
// scores[row, lane] = tile rows · lanes
HWY_INLINE void products(const TileRows& tile, const RowRange& range, const float* panel,
                         float* HWY_RESTRICT scores) {
  const float* const groups = tile.groups.data() + range.from * tile.features;
  for (std::int64_t row = 0; row < range.count(); row += kGroup) {
    multiply<false>(groups + row * tile.features, kGroup, panel, tile.features, scores + row * panel_width());
  }
}
// sums[feature, lane] += Σ_row tile[row, feature] · factors[row, lane]
HWY_INLINE void add_products(const TileRows& tile, const RowRange& range, const float* factors,
                             float* HWY_RESTRICT sums) {
  const float* const rows = tile.rows.data() + range.from * tile.stride;
  for (std::int64_t f = 0; f < tile.stride; f += kGroup) {
    multiply<true>(rows + f, tile.stride, factors, range.count(), sums + f * panel_width());
  }
}
// Writes panels of sums [panel, feature, lane] as rows, times a factor.
void write_lanes(const Floats& sums, std::int64_t stride, float factor, const HeadTensor<void>& to,
                 const TilePlace& at) {
  const std::int64_t width = panel_width();
  kernels::with_type(to.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::int64_t i = 0; i < at.queries; ++i) {
      const float* from = sums.data() + i / width * width * stride + i % width;
      T* row = to.row<T>(at.b, at.h, at.first_query + i);
      for (std::int64_t f = 0; f < to.features; ++f) {
        row[f * to.feature_stride] = numerics::narrow<T>(static_cast<double>(from[f * width] * factor));
      }
    }
  });
}

// For the queries of a tile or panel: whether any attends to any of these keys, and whether all attend to all.
struct TileVisibility {
  bool any = false, all = true;
};
TileVisibility visibility_of(const AttentionJob& job, const TilePlace& at) {
  TileVisibility visibility;
  visibility.all = !job.has_masks();
  for (std::int64_t i = 0; i < at.queries; ++i) {
    const KeyRange& key_range = job.key_range(at.b, at.first_query + i);
    if (key_range.begin < at.first_key + at.keys && key_range.end > at.first_key && key_range.begin < key_range.end)
      visibility.any = true;
    if (key_range.begin > at.first_key || key_range.end < at.first_key + at.keys) visibility.all = false;
  }
  return visibility;
}
// The range of a tile's rows, in whole groups, that the lanes of a panel need. A causal mask crosses tiles that are
// much longer than a panel is wide.
RowRange whole_groups_of(std::int64_t low, std::int64_t high, std::int64_t rows) {
  low = std::clamp<std::int64_t>(low, 0, rows);
  high = std::clamp<std::int64_t>(high, low, rows);
  return {low / kGroup * kGroup, std::min(rows, (high + kGroup - 1) / kGroup * kGroup)};
}
RowRange keys_of_lanes(const AttentionJob& job, const TilePlace& at) {
  std::int64_t low = at.first_key + at.keys, high = at.first_key;
  for (std::int64_t i = 0; i < at.queries; ++i) {
    const KeyRange& key_range = job.key_range(at.b, at.first_query + i);
    if (key_range.begin >= key_range.end) continue;
    low = std::min(low, key_range.begin);
    high = std::max(high, key_range.end);
  }
  return whole_groups_of(low - at.first_key, high - at.first_key, at.keys);
}
RowRange queries_of_lanes(const AttentionJob& job, const TilePlace& at) {
  std::int64_t low = at.queries, high = 0;
  for (std::int64_t i = 0; i < at.queries; ++i) {
    const KeyRange& key_range = job.key_range(at.b, at.first_query + i);
    if (std::max(key_range.begin, at.first_key) >= std::min(key_range.end, at.first_key + at.keys)) continue;
    low = std::min(low, i);
    high = i + 1;
  }
  return whole_groups_of(low, high, at.queries);
}
// The first and last visible key of a tile, as lane numbers.
HWY_INLINE float edge_of(std::int64_t key, const TilePlace& at) {
  return static_cast<float>(std::clamp<std::int64_t>(key - at.first_key, -1, at.keys));
}
bool sees(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const KeyRange& key_range = job.key_range(b, i);
  return key_range.begin <= j && j < key_range.end && !job.is_hidden(b, h, i, j);
}

// The capped score, and the derivative of the cap there.
HWY_INLINE VF cap_and_slope(VF score, float cap, VF& slope) {
  const VF t = tanh_of(DF(), hn::Mul(score, hn::Set(DF(), 1.0f / cap)));
  slope = hn::NegMulAdd(t, t, hn::Set(DF(), 1.0f));
  return hn::Mul(t, hn::Set(DF(), cap));
}

// What the softmax of a tile needs of one query: its logsumexp, D, and the edges of the keys that it attends to.
struct QueryNumbers {
  float log = -kNone, delta = 0, begin = 0, end = 0;  // a lane without a query has weight 0
};
HWY_INLINE QueryNumbers numbers_of(const BackwardWork& work, const TilePlace& at, std::int64_t i) {
  const AttentionJob& job = work.job.forward;
  const auto row = static_cast<std::size_t>((at.b * job.q.heads + at.h) * job.q.sequence + at.first_query + i);
  const KeyRange& key_range = job.key_range(at.b, at.first_query + i);
  return {work.sums.logs[row], work.sums.deltas[row], edge_of(key_range.begin, at), edge_of(key_range.end, at)};
}

// Turns the scores S in pass.weights into P, and the dP in pass.ds into dS, for a tile with queries or keys in its lanes.
template <Lanes kLanes, class Pass, class Tile>
void softmax_of_tile(Pass& pass, const TilePlace& at, bool masks, Tile& term) {
  constexpr bool has_query_lanes = kLanes == Lanes::kQueries;
  const AttentionJob& job = pass.job;
  const std::int64_t width = pass.width, rows = has_query_lanes ? at.keys : at.queries;
  const auto cap = static_cast<float>(job.softcap * kLog2E);
  HWY_ALIGN float logs[kMostWidth], deltas[kMostWidth], begins[kMostWidth], ends[kMostWidth];
  const auto set_query = [&](std::int64_t to, const QueryNumbers& query) {
    logs[to] = query.log, deltas[to] = query.delta, begins[to] = query.begin, ends[to] = query.end;
  };
  for (std::int64_t i = 0; has_query_lanes && i < width; ++i) {
    set_query(i, i < at.queries ? numbers_of(pass.work, at, i) : QueryNumbers{});
  }
  // of a lane's query, or of the row's
  const auto of_query = [&](const float* numbers, std::int64_t vector) HWY_ATTR {
    if constexpr (has_query_lanes) return load(numbers, vector);
    return hn::Set(DF(), numbers[0]);
  };
  for (std::int64_t row = 0; row < rows; ++row) {
    if constexpr (!has_query_lanes) set_query(0, numbers_of(pass.work, at, row));
    term.start_row(row);
    float* HWY_RESTRICT p = pass.weights.data() + row * width;
    float* HWY_RESTRICT ds = pass.ds.data() + row * width;
    for (std::int64_t vector = 0; vector < kPanelVectors; ++vector) {
      VF s = load(p, vector), slope_of_cap = hn::Set(DF(), 1.0f);
      if (job.softcap > 0) s = cap_and_slope(s, cap, slope_of_cap);
      s = term.is_constant() ? hn::Add(s, hn::Set(DF(), term.constant)) : term.add(row, vector, s);
      if (job.mask.data != nullptr) s = hn::Add(s, load(pass.mask_tile.data() + row * width, vector));
      VF weight = exp2_of_negative(DF(), hn::Sub(s, of_query(logs, vector)));
      VF d_score = hn::Mul(slope_of_cap, hn::Mul(weight, hn::Sub(load(ds, vector), of_query(deltas, vector))));
      if (masks) {
        const VF key = has_query_lanes ? hn::Set(DF(), static_cast<float>(row))
                                       : hn::Iota(DF(), static_cast<float>(vector * lanes()));
        const auto seen = hn::And(hn::Le(of_query(begins, vector), key), hn::Lt(key, of_query(ends, vector)));
        weight = hn::IfThenElseZero(seen, weight);
        d_score = hn::IfThenElseZero(seen, d_score);
      }
      store(weight, p, vector);
      store(d_score, ds, vector);
    }
    // lanes past the last token were masked above
    for (std::int64_t lane = 0; masks && job.has_masks() && lane < (has_query_lanes ? at.queries : at.keys); ++lane) {
      const std::int64_t query = has_query_lanes ? lane : row, key = has_query_lanes ? row : lane;
      if (!sees(job, at.b, at.h, at.first_query + query, at.first_key + key)) p[lane] = ds[lane] = 0.0f;
    }
  }
}

template <Lanes kLanes, class Pass> void softmax_of(Pass& pass, const TilePlace& at, bool masks) {
  const AttentionJob& job = pass.job;
  constexpr bool has_query_lanes = kLanes == Lanes::kQueries;
  if (job.mask.data != nullptr) {
    fill_mask(job, at, pass.mask_tile.data(), has_query_lanes ? pass.width : 1, has_query_lanes ? 1 : pass.width);
  }
  const terms::Tokens tokens = job.tokens();
  const terms::HWY_NAMESPACE::TileContext context{job.bias, tokens, at, pass.bias_tile.data(), pass.width};
  terms::HWY_NAMESPACE::with_tile<kLanes>(
      pass.work.bias.tiles, context, [&](auto& tile) HWY_ATTR { softmax_of_tile<kLanes>(pass, at, masks, tile); });
}

// --- queries in lanes: dq and the parameters --------------------------------------------------------------------

struct QueryPass {
  BackwardWork& work;
  const AttentionJob& job = work.job.forward;
  std::int64_t width = panel_width();
  LaneRows q{job.q.features}, d_out{job.v.features};
  TileRows k{job.q.features}, v{job.v.features};
  Floats dq = floats(kLaneBlock * k.stride), weights = floats(kRowBlock * kMostWidth), ds = weights,
         bias_tile = weights, mask_tile = weights;
  Floats scratch = floats(kMostWidth * std::max(job.q.features, job.v.features));
};

// Adds the dS of a tile to the gradients of the bias's parameters.
void add_parameters(QueryPass& pass, const TilePlace& at) {
  if (pass.work.job.parameters.empty()) return;
  const AttentionJob& job = pass.job;
  double* const sums = pass.work.job.parameters.data() + at.h * pass.work.job.head_parameters;
  const KeyRange& first = job.key_range(at.b, at.first_query);
  bool is_row = job.places.by_index;
  for (std::int64_t i = 1; i < at.queries && is_row; ++i) {
    is_row = job.key_range(at.b, at.first_query + i).diagonal == first.diagonal + i;
  }
  const terms::Tokens tokens = job.tokens();
  const bool is_of_distance =
      terms::with_term(*job.bias, [](const auto& source, auto term) { return term.is_of_distance(source); });
  if (!is_row || !is_of_distance) {
    for (std::int64_t j = 0; j < at.keys; ++j) {
      for (std::int64_t i = 0; i < at.queries; ++i) {
        if (!sees(job, at.b, at.h, at.first_query + i, at.first_key + j)) continue;
        const auto ds = static_cast<double>(pass.ds[static_cast<std::size_t>(j * pass.width + i)]);
        terms::add_gradient(*job.bias, {tokens, at.b, at.h, at.first_query + i, at.first_key + j}, ds, sums);
      }
    }
    return;
  }
  // the sum of dS by distance: one diagonal of the tile each
  float by_distance[kRowBlock + kMostWidth + 16] = {};
  for (std::int64_t j = 0; j < at.keys; ++j) {
    float* HWY_RESTRICT to = by_distance + at.keys - 1 - j;
    const float* HWY_RESTRICT from = pass.ds.data() + j * pass.width;
    for (std::int64_t vector = 0; vector < kPanelVectors; ++vector) {
      store(hn::Add(load(to, vector), load(from, vector)), to, vector);
    }
  }
  const std::int64_t x = first.diagonal + job.places.shift - (at.first_key + at.keys - 1);  // for the first sum
  terms::with_term(*job.bias, [&](const auto& source, auto term) {
    for (std::int64_t step = 0; step < at.keys + at.queries - 1; ++step) {
      term.add_gradient_at(source, -(x + step), static_cast<double>(by_distance[step]), sums);
    }
  });
}

// Adds the dS of a tile to the gradient of the sums of gates, at each query's own token. A query belongs to one
// thread.
void add_gate_rows(QueryPass& pass, const TilePlace& at) {
  double* const d_sums = pass.work.job.gate_gradient(at.b, at.h);
  if (d_sums == nullptr) return;
  HWY_ALIGN float rows[kMostWidth] = {};
  for (std::int64_t j = 0; j < at.keys; ++j) {
    for (std::int64_t vector = 0; vector < kPanelVectors; ++vector) {
      store(hn::Add(load(rows, vector), load(pass.ds.data() + j * pass.width, vector)), rows, vector);
    }
  }
  for (std::int64_t i = 0; i < at.queries; ++i) {
    const KeyRange& key_range = pass.job.key_range(at.b, at.first_query + i);
    if (key_range.begin < key_range.end) d_sums[key_range.diagonal] += static_cast<double>(rows[i]);
  }
}

void query_block(QueryPass& pass, const TilePlace& block) {
  const AttentionJob& job = pass.job;
  const std::int64_t width = pass.width, g = block.h / job.group;
  load_lanes(pass.q, job.q, job.q_rotation, block, static_cast<float>(job.scale * kLog2E), pass.scratch);
  load_lanes(pass.d_out, pass.work.job.d_out, {}, block, 1.0f, pass.scratch);
  std::fill(pass.dq.begin(), pass.dq.end(), 0.0f);
  // keys that no query attends to are not read: they, and their angles, may not exist
  const std::int64_t last_key = job.visible_keys(block.b).end;
  for (std::int64_t key = 0; key < last_key; key += kRowBlock) {
    const std::int64_t keys = std::min(kRowBlock, last_key - key);
    TilePlace all = block;
    all.first_key = key;
    all.keys = keys;
    if (!visibility_of(job, all).any) continue;
    load_tile(pass.k, job.k, job.k_rotation, block.b, g, key, key + keys);
    load_tile(pass.v, job.v, {}, block.b, g, key, key + keys);
    for (std::int64_t first = 0, panel = 0; first < block.queries; first += width, ++panel) {
      TilePlace at{block.b, block.h, block.first_query + first, std::min(width, block.queries - first), key, keys};
      const RowRange range = keys_of_lanes(job, at);
      at.first_key += range.from;
      at.keys = range.count();
      const TileVisibility visibility = visibility_of(job, at);
      if (!visibility.any) continue;
      products(pass.k, range, pass.q.panel(panel), pass.weights.data());
      products(pass.v, range, pass.d_out.panel(panel), pass.ds.data());
      softmax_of<Lanes::kQueries>(pass, at, !visibility.all);
      add_parameters(pass, at);
      add_gate_rows(pass, at);
      add_products(pass.k, range, pass.ds.data(), pass.dq.data() + panel * pass.k.stride * width);
    }
  }
  if (pass.work.job.dq.data != nullptr) {
    write_lanes(pass.dq, pass.k.stride, static_cast<float>(job.scale), pass.work.job.dq, block);
  }
}

// Blocks `begin` to `end`, in the order of heads, batch, queries.
void query_blocks(BackwardWork& work, std::int64_t begin, std::int64_t end) {
  QueryPass pass{work};
  const AttentionJob& job = work.job.forward;
  const std::int64_t per_head = (job.q.sequence + kLaneBlock - 1) / kLaneBlock;
  for (std::int64_t at = begin; at < end; ++at) {
    const std::int64_t first = at % per_head * kLaneBlock;
    query_block(pass, {at / per_head % job.q.batch, at / per_head / job.q.batch, first,
                       std::min(kLaneBlock, job.q.sequence - first), 0, 0});
  }
}

// --- keys in lanes: dk and dv -------------------------------------------------------------------------------------

struct KeyPass {
  BackwardWork& work;
  const AttentionJob& job = work.job.forward;
  std::int64_t width = panel_width();
  LaneRows k{job.q.features}, v{job.v.features};
  TileRows q{job.q.features}, d_out{job.v.features};
  Floats dk = floats(kLaneBlock * q.stride), dv = floats(kLaneBlock * d_out.stride);
  Floats weights = floats(kRowBlock * kMostWidth), ds = weights, bias_tile = weights, mask_tile = weights;
  Floats scratch = floats(kMostWidth * std::max(job.q.features, job.v.features));
};

// The same at the keys' own tokens, which are distinct elements for each key and head.
void add_gate_columns(KeyPass& pass, const TilePlace& at) {
  double* const d_sums = pass.work.job.gate_gradient(at.b, at.h);
  if (d_sums == nullptr) return;
  HWY_ALIGN float columns[kMostWidth] = {};
  for (std::int64_t i = 0; i < at.queries; ++i) {
    for (std::int64_t vector = 0; vector < kPanelVectors; ++vector) {
      store(hn::Add(load(columns, vector), load(pass.ds.data() + i * pass.width, vector)), columns, vector);
    }
  }
  for (std::int64_t j = 0; j < at.keys; ++j) d_sums[at.first_key + j] -= static_cast<double>(columns[j]);
}

void key_block(KeyPass& pass, std::int64_t b, std::int64_t g, std::int64_t begin, std::int64_t end) {
  const AttentionJob& job = pass.job;
  const std::int64_t width = pass.width;
  // load_lanes treats tokens as queries; keys that no query attends to are not read
  const TilePlace block{b, g, begin, end - begin, 0, 0};
  end = std::max(begin, std::min(end, job.visible_keys(b).end));
  const TilePlace seen{b, g, begin, end - begin, 0, 0};
  load_lanes(pass.k, job.k, job.k_rotation, seen, static_cast<float>(job.scale * kLog2E), pass.scratch);
  load_lanes(pass.v, job.v, {}, seen, 1.0f, pass.scratch);
  std::fill(pass.dk.begin(), pass.dk.end(), 0.0f);
  std::fill(pass.dv.begin(), pass.dv.end(), 0.0f);
  for (std::int64_t h = g * job.group; h < (g + 1) * job.group; ++h) {
    for (std::int64_t query = 0; end > begin && query < job.q.sequence; query += kRowBlock) {
      const std::int64_t queries = std::min(kRowBlock, job.q.sequence - query);
      if (!visibility_of(job, {b, h, query, queries, begin, end - begin}).any) continue;
      load_tile(pass.q, job.q, job.q_rotation, b, h, query, query + queries);
      load_tile(pass.d_out, pass.work.job.d_out, {}, b, h, query, query + queries);
      for (std::int64_t first = begin, panel = 0; first < end; first += width, ++panel) {
        TilePlace at{b, h, query, queries, first, std::min(width, end - first)};
        const RowRange range = queries_of_lanes(job, at);
        at.first_query += range.from;
        at.queries = range.count();
        const TileVisibility visibility = visibility_of(job, at);
        if (!visibility.any) continue;
        products(pass.q, range, pass.k.panel(panel), pass.weights.data());
        products(pass.d_out, range, pass.v.panel(panel), pass.ds.data());
        softmax_of<Lanes::kKeys>(pass, at,
                                 !visibility.all || at.keys < width);  // lanes past the lengths are written too
        add_gate_columns(pass, at);
        add_products(pass.d_out, range, pass.weights.data(), pass.dv.data() + panel * pass.d_out.stride * width);
        add_products(pass.q, range, pass.ds.data(), pass.dk.data() + panel * pass.q.stride * width);
      }
    }
  }
  const auto scale = static_cast<float>(job.scale);
  if (pass.work.job.dk.data != nullptr) write_lanes(pass.dk, pass.q.stride, scale, pass.work.job.dk, block);
  if (pass.work.job.dv.data != nullptr) write_lanes(pass.dv, pass.d_out.stride, 1.0f, pass.work.job.dv, block);
}

void key_blocks(BackwardWork& work, std::int64_t begin, std::int64_t end) {
  KeyPass pass{work};
  const AttentionJob& job = work.job.forward;
  const std::int64_t per_head = (job.k.sequence + kLaneBlock - 1) / kLaneBlock;
  for (std::int64_t at = begin; at < end; ++at) {
    const std::int64_t first = at % per_head * kLaneBlock;
    key_block(pass, at / per_head / job.k.heads, at / per_head % job.k.heads, first,
              std::min(first + kLaneBlock, job.k.sequence));
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::attend::cpu {
namespace {

HWY_EXPORT(query_blocks);
HWY_EXPORT(key_blocks);

QuerySums sums_of(const BackwardJob& job) {
  const AttentionJob& forward = job.forward;
  const std::int64_t rows = forward.q.batch * forward.q.heads * forward.q.sequence;
  QuerySums sums{floats(rows), floats(rows)};
  kernels::cpu::parallel_for(rows, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t head = at / forward.q.sequence, i = at % forward.q.sequence;
      const std::int64_t b = head / forward.q.heads, h = head % forward.q.heads;
      double delta = 0;
      kernels::with_type(job.d_out.type, [&](auto d_kind) {
        kernels::with_type(forward.out.type, [&](auto out_kind) {
          const auto* d_out = job.d_out.row<decltype(d_kind)>(b, h, i);
          const auto* out = forward.out.row<decltype(out_kind)>(b, h, i);
          for (std::int64_t f = 0; f < forward.v.features; ++f) {
            delta += numerics::widen(d_out[f * job.d_out.feature_stride]) *
                     numerics::widen(out[f * forward.out.feature_stride]);
          }
        });
      });
      sums.deltas[static_cast<std::size_t>(at)] = static_cast<float>(delta);
      const auto log = static_cast<double>(*forward.logsumexp.row<float>(b, h, i));
      // a query with no visible key has weight 0 everywhere
      sums.logs[static_cast<std::size_t>(at)] =
          std::isinf(log) && log < 0 ? std::numeric_limits<float>::infinity() : static_cast<float>(log * kLog2E);
    }
  });
  return sums;
}

}  // namespace

void backward(BackwardJob& job) {
  const AttentionJob& forward = job.forward;
  const bool reads_content = vectors_in(forward) != nullptr || counted_gates_in(forward) != nullptr;
  // if scores are capped, the bias's parameters and q get different gradients
  const bool has_two_gradients = forward.softcap > 0 && !(job.parameters.empty() && job.d_gate_sums.empty());
  if (forward.v.type == DataType::kF64 || reads_content || has_two_gradients) {
    kernels::cpu::parallel_for(forward.k.heads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t g = begin; g < end; ++g) reference::backward_group(job, g);
    });
    return;
  }
  const ScoreBias bias = prepare_bias(forward, kKeyBlock + kQueryBlock);
  const QuerySums sums = sums_of(job);
  BackwardWork work{job, bias, sums};
  // One thread sums all parameters of a head, so the order is fixed.
  const std::int64_t query_blocks_of_head = forward.q.batch * ((forward.q.sequence + kQueryBlock - 1) / kQueryBlock);
  const std::int64_t step = job.parameters.empty() ? 1 : std::max(query_blocks_of_head, std::int64_t{1});
  const bool has_gates = !job.d_gate_sums.empty();
  if (job.dq.data != nullptr || !job.parameters.empty() || has_gates) {
    kernels::cpu::parallel_for(forward.q.heads * query_blocks_of_head / step, 1,
                               [&](std::int64_t begin, std::int64_t end) {
                                 HWY_DYNAMIC_DISPATCH(query_blocks)(work, begin * step, end * step);
                               });
  }
  if (job.dk.data == nullptr && job.dv.data == nullptr && !has_gates) return;
  const std::int64_t key_blocks_of_head = (forward.k.sequence + kQueryBlock - 1) / kQueryBlock;
  kernels::cpu::parallel_for(forward.k.batch * forward.k.heads * key_blocks_of_head, 1,
                             [&](std::int64_t begin, std::int64_t end) {
                               HWY_DYNAMIC_DISPATCH(key_blocks)(work, begin, end);
                             });
}

}  // namespace posenc::attend::cpu
#endif
