// The pass with queries in lanes: dQ and the gradients of the position's parameters; for code that is compiled once per
// SIMD target.

#if defined(POSENC_BACKWARD_QUERIES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_BACKWARD_QUERIES_INL_H
#undef POSENC_BACKWARD_QUERIES_INL_H
#else
#define POSENC_BACKWARD_QUERIES_INL_H
#endif

#include <algorithm>

#include "attention/cpu/backward/softmax-inl.h"
#include "terms/all.h"
#include "terms/terms.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
inline void add_parameters(QueryPass& pass, const TilePlace& at) {
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
        const auto ds = static_cast<double>(pass.ds[j * pass.width + i]);
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
inline void add_gate_rows(QueryPass& pass, const TilePlace& at) {
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

inline void query_block(QueryPass& pass, const TilePlace& block) {
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
inline void query_blocks(BackwardWork& work, std::int64_t begin, std::int64_t end) {
  QueryPass pass{work};
  const AttentionJob& job = work.job.forward;
  const std::int64_t per_head = (job.q.sequence + kLaneBlock - 1) / kLaneBlock;
  for (std::int64_t at = begin; at < end; ++at) {
    const std::int64_t first = at % per_head * kLaneBlock;
    query_block(pass, {at / per_head % job.q.batch, at / per_head / job.q.batch, first,
                       std::min(kLaneBlock, job.q.sequence - first), 0, 0});
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
