// P and dS of a tile, for code that is compiled once per SIMD target.

#if defined(POSENC_BACKWARD_SOFTMAX_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_BACKWARD_SOFTMAX_INL_H
#undef POSENC_BACKWARD_SOFTMAX_INL_H
#else
#define POSENC_BACKWARD_SOFTMAX_INL_H
#endif

#include "attention/cpu/backward/tiles-inl.h"
#include "attention/cpu/tanh-inl.h"
#include "terms/all-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using terms::Lanes;

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
  const std::size_t row = (at.b * job.q.heads + at.h) * job.q.sequence + at.first_query + i;
  const KeyRange& key_range = job.key_range(at.b, at.first_query + i);
  return {work.sums.logs[row], work.sums.deltas[row], edge_of(key_range.begin, at), edge_of(key_range.end, at)};
}

// Turns the scores S in pass.weights into P, and the dP in pass.ds into dS, for a tile with queries or keys in its lanes.
template <Lanes kLanes, class Pass, class Tile>
inline void softmax_of_tile(Pass& pass, const TilePlace& at, bool masks, Tile& term) {
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

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
