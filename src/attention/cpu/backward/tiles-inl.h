// Rows of q, k, v and dO as the products of the backward pass need them, those products, and which queries and keys of a
// tile attend to each other; for code that is compiled once per SIMD target.

#if defined(POSENC_BACKWARD_TILES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_BACKWARD_TILES_INL_H
#undef POSENC_BACKWARD_TILES_INL_H
#else
#define POSENC_BACKWARD_TILES_INL_H
#endif

#include <algorithm>

#include "attention/cpu/backward/work.h"
#include "attention/cpu/pack-inl.h"
#include "attention/cpu/tiles.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

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

inline void load_lanes(LaneRows& to, const HeadTensor<const void>& x, const RowRotation& rotation,
                       const TilePlace& at, float factor, Floats& scratch) {
  const std::int64_t width = panel_width();
  for (std::int64_t first = 0; first < at.queries; first += width) {
    const std::int64_t begin = at.first_query + first, count = std::min(width, at.queries - first);
    load_rows(x, rotation, at.b, at.h, begin, begin + count, to.features, scratch.data());
    pack_panel(scratch.data(), count, to.features, factor, to.panels.data() + first * to.features);
  }
}
inline void load_tile(TileRows& to, const HeadTensor<const void>& x, const RowRotation& rotation, std::int64_t b,
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
inline void write_lanes(const Floats& sums, std::int64_t stride, float factor, const HeadTensor<void>& to,
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
inline TileVisibility visibility_of(const AttentionJob& job, const TilePlace& at) {
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
inline RowRange whole_groups_of(std::int64_t low, std::int64_t high, std::int64_t rows) {
  low = std::clamp<std::int64_t>(low, 0, rows);
  high = std::clamp<std::int64_t>(high, low, rows);
  return {low / kGroup * kGroup, std::min(rows, (high + kGroup - 1) / kGroup * kGroup)};
}
inline RowRange keys_of_lanes(const AttentionJob& job, const TilePlace& at) {
  std::int64_t low = at.first_key + at.keys, high = at.first_key;
  for (std::int64_t i = 0; i < at.queries; ++i) {
    const KeyRange& key_range = job.key_range(at.b, at.first_query + i);
    if (key_range.begin >= key_range.end) continue;
    low = std::min(low, key_range.begin);
    high = std::max(high, key_range.end);
  }
  return whole_groups_of(low - at.first_key, high - at.first_key, at.keys);
}
inline RowRange queries_of_lanes(const AttentionJob& job, const TilePlace& at) {
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
inline bool sees(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const KeyRange& key_range = job.key_range(b, i);
  return key_range.begin <= j && j < key_range.end && !job.is_hidden(b, h, i, j);
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
