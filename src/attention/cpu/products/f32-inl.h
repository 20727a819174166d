// The products of attention in f32, by vectors; for code that is compiled once per SIMD target. They compute everything.

#if defined(POSENC_PRODUCTS_F32_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_PRODUCTS_F32_INL_H
#undef POSENC_PRODUCTS_F32_INL_H
#else
#define POSENC_PRODUCTS_F32_INL_H
#endif

#include <algorithm>
#include <optional>

#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct F32Products {
  static constexpr int kVectors = kPanelVectors;
  static constexpr std::int64_t kStep = 1;
  static constexpr float kKeptRise = 0;
  static constexpr bool kDefersScale = false, kOverlaps = false;
  template <class T> using Stored = T;

  bool v_in_place;               // read without a copy
  AlignedVector<float> q, k, v;  // panels, groups, rows
  ValueRows values;
  std::optional<bool> are_finite;  // those values; checked only if some are masked

  static bool takes(const AttentionJob& /*job*/, const ScoreBias& /*bias*/) { return true; }
  static BlockSizes sizes_of(const AttentionJob& job) {
    return {queries_of_block(job, false), kKeyBlock, panel_width(), (job.v.features + kGroup - 1) / kGroup * kGroup};
  }
  F32Products(const Block& block, bool /*keeps_keys*/)
      : v_in_place(block.job.v.type == DataType::kF32 && block.job.v.feature_stride == 1 &&
                   block.job.v.features % kGroup == 0 && block.job.v.pages == nullptr),
        q(floats(block.queries * block.features)),
        k(floats(kKeyBlock * block.features)),
        v(floats(kKeyBlock * block.value_features, !v_in_place)) {}

  void load_queries(Block& block) {
    const AttentionJob& job = block.job;
    const auto factor = static_cast<float>(job.scale * kLog2E);
    for (std::int64_t first = block.begin, panel = 0; first < block.end; first += block.width, ++panel) {
      const std::int64_t count = std::min(block.width, block.end - first);
      float* const to = q.data() + panel * block.features * block.width;
      load_rows(job.q, job.q_rotation, block.b, block.h, first, first + count, block.features, block.rows.data());
      pack_panel(block.rows.data(), count, block.features, factor, to);
      if (block.bias.query_rows == 0) continue;
      score_vectors(block, panel, first, count, relative_queries_of(block, first, count, to));
    }
  }

  void load_keys(Block& block) {
    const AttentionJob& job = block.job;
    const std::int64_t g = block.key_head(), first = block.first_key, last = block.last_key;
    are_finite.reset();
    if (job.k_rotation.cos_sin == nullptr && job.k.pages == nullptr && job.k.type != DataType::kQ8_0) {
      pack_groups(job.k, block.b, g, first, last, k.data());
    } else {
      load_rows(job.k, job.k_rotation, block.b, g, first, last, block.features, block.rows.data());
      HeadTensor<const void> rows;
      rows.data = block.rows.data();
      rows.features = rows.token_stride = block.features;
      pack_groups(rows, 0, 0, 0, last - first, k.data());
    }
    if (v_in_place) {
      values = {job.v.row<float>(block.b, g, first), job.v.token_stride};
    } else {
      pack_rows(job.v, block.b, g, first, last, block.value_features, v.data());
      values = {v.data(), block.value_features};
    }
  }

  void score(Block& block, Tile& tile) {
    const float* const queries = q.data() + tile.panel * block.features * block.width;
    for (std::int64_t g = tile.begin / kGroup; g * kGroup < tile.end; ++g) {
      multiply<false>(k.data() + g * kGroup * block.features, kGroup, queries, block.features,
                      block.scores.data() + g * kGroup * block.width);
    }
  }

  void weigh(Block& block, const Tile& tile, const float* HWY_RESTRICT base) {
    const DF d;
    const std::int64_t width = panel_width();
    float* HWY_RESTRICT row_sum = block.row_sum.data() + tile.panel * width;
    const VF x0 = load(base, 0), x1 = load(base, 1), x2 = load(base, 2);
    VF t0 = hn::Zero(d), t1 = t0, t2 = t0;
    float* HWY_RESTRICT s = block.scores.data() + tile.begin * width;
    for (std::int64_t j = tile.begin; j < tile.end; ++j, s += width) {
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

  void add_values(Block& block, const Tile& tile) {
    float* const sums = block.sums_of(tile.panel);
    for (std::int64_t f = 0; f < block.value_features; f += kGroup) {
      multiply<true>(values.row(tile.begin) + f, values.stride, block.scores.data() + tile.begin * block.width,
                     tile.end - tile.begin, sums + f * block.width);
    }
  }

  float weight(const Block& block, std::int64_t j, std::int64_t i) const { return block.scores[j * block.width + i]; }

  bool values_are_finite(const Block& block) {
    if (are_finite) return *are_finite;
    VF worst = hn::Zero(DF());
    float rest = 0;
    for (std::int64_t j = 0; j < block.last_key - block.first_key; ++j) {
      const float* HWY_RESTRICT row = values.row(j);
      std::int64_t f = 0;
      for (; f + lanes() <= block.value_features; f += lanes()) {  // x − x is 0 or NaN
        const VF x = hn::LoadU(DF(), row + f);
        worst = hn::Add(worst, hn::Sub(x, x));
      }
      for (; f < block.value_features; ++f) rest += row[f] - row[f];
    }
    are_finite = hn::AllTrue(DF(), hn::Eq(worst, hn::Zero(DF()))) && rest == 0.0f;
    return *are_finite;
  }

  void before_rescaling(Block& /*block*/, std::int64_t /*panel*/) {}
};

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
