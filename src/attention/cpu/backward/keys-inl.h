// The pass with keys in lanes: dK and dV; for code that is compiled once per SIMD target.

#if defined(POSENC_BACKWARD_KEYS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_BACKWARD_KEYS_INL_H
#undef POSENC_BACKWARD_KEYS_INL_H
#else
#define POSENC_BACKWARD_KEYS_INL_H
#endif

#include <algorithm>

#include "attention/cpu/backward/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

// Adds the dS of a tile to the gradient of the sums of gates, at the keys' own tokens, which are distinct elements for each
// key and head.
inline void add_gate_columns(KeyPass& pass, const TilePlace& at) {
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

inline void key_block(KeyPass& pass, std::int64_t b, std::int64_t g, std::int64_t begin, std::int64_t end) {
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

inline void key_blocks(BackwardWork& work, std::int64_t begin, std::int64_t end) {
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

#endif  // per-target include guard
