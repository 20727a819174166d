// A decoding step of several rows over a cache of 16 or 8 bits, by AMX. Scores are K Qᵀ: tiles of 16 keys of bf16 are loaded from
// the cache itself, and the scores of up to 16 rows, a panel, are transposed. Sums are P V, for which the values of two keys
// are interleaved. Keys and values of other types are converted to bf16 on the way.

#ifndef POSENC_DECODE_AMX_INL_H  // compiled for a single SIMD target
#define POSENC_DECODE_AMX_INL_H

#include <algorithm>
#include <cmath>

#include "attention/cpu/decode/amx_rows-inl.h"
#include "attention/cpu/decode/split.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

// What the heads of a run share.
struct NativeRoom {
  static constexpr std::int64_t kGroups = kDecodeStep / AmxUnit::kDepth;  // of 32 keys
  std::int64_t planes, panels;
  AlignedVector<std::uint16_t> keys;  // not loaded from the cache itself, [planes, 64, features]
  AlignedVector<float> weights;       // [panels, groups, 2 planes, 16, 16]: of keys j and j + 16, two bf16 in a word
  AlignedVector<std::uint16_t> values;  // [groups, planes, 4, 16 pairs of keys, 16, 2]

  NativeRoom(const AttentionJob& job, DataType type, std::int64_t rows, bool is_used)
      : planes(type == DataType::kF16 ? 2 : 1),
        panels((rows + kTileRows - 1) / kTileRows),
        keys(static_cast<std::size_t>(is_used ? planes * kDecodeStep * job.k.features : 0)),
        weights(static_cast<std::size_t>(is_used ? panels * kGroups * kTile : 0)),
        values(static_cast<std::size_t>(is_used ? kGroups * planes * 4 * kTile : 0)) {}
};

struct NativeProducts {
  static constexpr std::int64_t kGroups = NativeRoom::kGroups;
  static constexpr std::int64_t kMostFeatures = 64;  // of values, multiplied at a time
  using Unit = UseMatrixUnit;

  NativeRoom& room;
  DataType type;  // of the cache
  bool is_used;
  std::int64_t rows, panels, features, value_features;
  std::int64_t planes, plane;      // of a panel of queries; elements
  float factor = 1;                // of the scores
  const float* wide = nullptr;     // queries as f32, [rows, features]
  AlignedVector<std::uint16_t> q;  // [panels, planes, features / 2, 16, 2]
  BlockFetch ahead;
  std::int64_t lines_of_tile = 0, lines_of_weights = 0, lines_of_pair = 0;  // prefetched beside each

  NativeProducts(const AttentionJob& job, const RowReader& k, const RowReader& v, std::int64_t some_rows,
                 NativeRoom& a_room)
      : room(a_room),
        type(k.type),
        is_used(takes(job, k, v, some_rows)),
        rows(some_rows),
        panels((rows + kTileRows - 1) / kTileRows),
        features(job.q.features),
        value_features(job.v.features),
        planes(is_bf16(job.q.type, job.q_rotation) ? 1 : 2),
        plane(features * kTileRows),
        q(static_cast<std::size_t>(is_used ? panels * planes * plane : 0)) {}

  // An f32 result must have the error of f32.
  static bool takes(const AttentionJob& job, const RowReader& k, const RowReader& v, std::int64_t rows) {
    // with fewer rows, vectors are as fast; two planes take their time
    const std::int64_t fewest = k.type == DataType::kF16 ? kTileRows : kTileRows / 2;
    return rows >= fewest && k.in_place && v.in_place && k.type != DataType::kF32 && k.type != DataType::kQ8_0 &&
           is_16_bits(job.out.type) && k.x.features % AmxUnit::kDepth == 0 && v.x.features % AmxUnit::kRows == 0 &&
           kernels::cpu::machine_multiplies_bf16_matrices();
  }
  // Calls visit(T{}) with the type of the cache.
  template <class Visitor> HWY_INLINE void with_cache(const Visitor& visit) const {
    if (type == DataType::kF16) {
      visit(Half{});
    } else if (type == DataType::kE4M3) {
      visit(E4M3{});
    } else {
      visit(BFloat16{});
    }
  }

  // Returns whether the factor is left out of `from`, [rows, features].
  bool take_queries(const AlignedVector<float>& from, float a_factor, bool /*widens_keys*/) {
    if (!is_used) return false;
    wide = from.data();
    factor = a_factor;
    HWY_ALIGN float part[kTileRows * AmxUnit::kDepth];  // of a panel, in the order of the features of store_key
    for (std::int64_t p = 0; p < panels; ++p) {
      const std::int64_t count = std::min(kTileRows, rows - p * kTileRows);
      for (std::int64_t f = 0; f < features; f += AmxUnit::kDepth) {
        for (std::int64_t r = 0; r < count; ++r) {
          const float* const row = wide + (p * kTileRows + r) * features + f;
          for (std::int64_t i = 0; i < AmxUnit::kDepth; ++i) {
            part[r * AmxUnit::kDepth + i] = row[type == DataType::kF16 ? i / 2 + i % 2 * kTileRows : i];
          }
        }
        AmxUnit::pack_columns(part, count, AmxUnit::kDepth, AmxUnit::kDepth, planes, plane,
                              q.data() + p * planes * plane + f * kTileRows);
      }
    }
    return true;
  }

  // Prefetches what lies ahead of keys `first` to `last` while these are computed: the shares are those of the time that the
  // parts take, and a little more, because what is left at the end is not prefetched.
  void begin_block(RowReader& k, RowReader& v, std::int64_t b, std::int64_t g, std::int64_t first,
                   std::int64_t last) {
    ahead = {};
    if (!is_used || k.ahead == 0) return;
    const auto lines = [&](RowReader& reader) {
      return BlockFetch::Lines{reader.load(b, g, first, last), reader.x.features * size_of(reader.type),
                               last - first};
    };
    ahead = {lines(k), lines(v)};
    const std::int64_t all = ahead.all(), count = last - first, steps = (count + kDecodeStep - 1) / kDecodeStep;
    const auto share = [&](std::int64_t percent, std::int64_t calls) {
      return (all * percent + 100 * calls - 1) / (100 * calls);
    };
    lines_of_tile = share(40, steps * 4 * (features / AmxUnit::kDepth));
    lines_of_weights = share(30, rows * steps);
    lines_of_pair = share(40, count / 2 * ((value_features + kMostFeatures - 1) / kMostFeatures) + 1);
  }
  HWY_INLINE void fetch_beside_weights() { ahead.some(lines_of_weights); }

  // Whether 16 rows from `j` on are at a constant distance.
  static bool are_even(const StepRows& rows, std::int64_t j, std::int64_t distance) {
    bool are = true;
    for (std::int64_t i = 1; i < kTileRows; ++i) are &= rows.offsets[j + i] - rows.offsets[j] == i * distance;
    return are;
  }
  // Whether the keys of a step can be loaded from the cache itself. The tiles past the last repeat one.
  bool find_tiles(const StepRows& from, std::int64_t count, KeyTiles& tiles) const {
    if (type != DataType::kBF16 || count % kTileRows != 0) return false;
    tiles.stride = from.offsets[1] - from.offsets[0];
    for (std::int64_t j = 0; j < kDecodeStep; j += kTileRows) {
      if (j < count && from.even_step == 0 && !are_even(from, j, tiles.stride)) return false;
      tiles.at[j / kTileRows] = static_cast<const std::byte*>(from[j < count ? j : 0]);
    }
    return true;
  }
  // The keys of a step, from the cache or converted; past the last, whatever was there.
  KeyTiles tiles_of(const StepRows& from, std::int64_t count) {
    KeyTiles tiles{};
    if (find_tiles(from, count, tiles)) return tiles;
    tiles.stride = 2 * features;
    tiles.plane = room.planes > 1 ? kDecodeStep * tiles.stride : 0;
    for (std::int64_t t = 0; t < 4; ++t) {
      tiles.at[t] = reinterpret_cast<const std::byte*>(room.keys.data() + t * kTileRows * features);
    }
    with_cache([&](auto kind) HWY_ATTR {
      using T = decltype(kind);
      for (std::int64_t j = 0; j < count; ++j) {
        const auto* const row = static_cast<const T*>(from[j]);
        for (std::int64_t f = 0; f < features; f += AmxUnit::kDepth) {
          store_key(row + f, room.keys.data() + j * features + f, kDecodeStep * features);
        }
      }
    });
    return tiles;
  }
  // Of two planes, an infinity times the lower one may be NaN: such scores are computed again, one product at a time.
  HWY_NOINLINE void score_again(const Step& step, const StepRows& from, std::int64_t first, std::int64_t last,
                                std::int64_t j) const {
    with_cache([&](auto kind) HWY_ATTR {
      using T = decltype(kind);
      for (; first < last; ++first) {
        for (std::int64_t key = j; key < std::min(j + kTileRows, step.count()); ++key) {
          float& score = step.scores(first)[key];
          if (!std::isnan(score)) continue;
          float sum = 0;
          for (std::int64_t f = 0; f < features; ++f) {
            sum += wide[first * features + f] * element(static_cast<const T*>(from[key])[f]);
          }
          score = sum * factor;
        }
      }
    });
  }
  // Scores of a step; returns whether it can.
  bool score(const Step& step, const StepRows& from) {
    if (!is_used) return false;
    const KeyTiles tiles = tiles_of(from, step.count());
    const __m512 by = _mm512_set1_ps(factor);
    for (std::int64_t p = 0; p < panels; ++p) {
      HWY_ALIGN float columns[kDecodeStep * kTileRows];
      const auto fetch = [&]() HWY_ATTR {
        if (p == 0) ahead.some(lines_of_tile);
      };
      score_tiles(tiles, fetch, q.data() + p * planes * plane, planes > 1 ? plane : 0, features, columns);
      const std::int64_t last = std::min((p + 1) * kTileRows, rows);
      for (std::int64_t r = p * kTileRows; r < last; r += 4) {
        for (std::int64_t j = 0; j < step.count(); j += kTileRows) {
          const __mmask16 nans = store_four_rows(columns + j * kTileRows + r % kTileRows, by, last - r,
                                                 step.scores(r) + j, step.block.stride);
          if (nans != 0 && planes + room.planes > 2) score_again(step, from, r, std::min(r + 4, last), j);
        }
      }
    }
    return true;
  }

  // The weights of a step in two planes; past the last key, zeros.
  void split_weights(const Step& step) {
    const __m512 by = _mm512_set1_ps(kWeightFactor);
    const auto load = [&](const float* row, std::int64_t j) HWY_ATTR {
      const std::int64_t some = std::clamp<std::int64_t>(step.count() - j, 0, kTileRows);
      return _mm512_mul_ps(by, _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << some) - 1), row + j));
    };
    for (std::int64_t r = 0; r < rows; ++r) {
      float* to = room.weights.data() + r / kTileRows * kGroups * kTile + r % kTileRows * kTileRows;
      for (std::int64_t j = 0; j < step.count(); j += AmxUnit::kDepth, to += kTile) {
        split_pair(load(step.scores(r), j), load(step.scores(r), j + kTileRows), to, to + kTile / 2);
      }
    }
  }
  // The values of keys j and j + 16 of every 32, side by side: `some` features from f on; past the last key, zeros. kIsWhole: there are 64 keys and 64 features.
  template <class T, bool kIsWhole>
  HWY_INLINE void interleave(const StepRows& from, std::int64_t count, std::int64_t f, std::int64_t some) {
    const std::int64_t keys_in = kIsWhole ? kDecodeStep : count, features_in = kIsWhole ? kMostFeatures : some;
    const auto row_of = [&](std::int64_t key) HWY_ATTR {
      return kIsWhole || key < count ? static_cast<const T*>(from[key]) + f : nullptr;
    };
    for (std::int64_t j = 0; j < keys_in; j += AmxUnit::kDepth) {
      std::uint16_t* to = room.values.data() + j / AmxUnit::kDepth * 4 * room.planes * kTile;
      for (std::int64_t i = j; i < j + kTileRows; ++i, to += AmxUnit::kDepth) {
        ahead.some(lines_of_pair);
        const T *const first = row_of(i), *const second = row_of(i + kTileRows);
        for (std::int64_t at = 0; at < features_in; at += AmxUnit::kRows) {
          const auto after = [&](const T* row) { return kIsWhole || row != nullptr ? row + at : nullptr; };
          store_values<kIsWhole>(after(first), after(second), to + at / kTileRows * kTile, 4 * kTile);
        }
      }
    }
  }
  // Adds values of a step in which every query attends to all keys, for some rows; returns how many.
  std::int64_t add(const Step& step, const StepRows& from, std::int64_t /*value_features*/) {
    if (!is_used) return 0;
    split_weights(step);
    const std::int64_t groups = (step.count() + AmxUnit::kDepth - 1) / AmxUnit::kDepth;
    HWY_ALIGN float part[4 * kTileSums];
    with_cache([&](auto kind) HWY_ATTR {
      using T = decltype(kind);
      for (std::int64_t f = 0; f < value_features; f += kMostFeatures) {
        const std::int64_t some = std::min(kMostFeatures, value_features - f);
        if (some == kMostFeatures && step.count() == kDecodeStep) {
          interleave<T, true>(from, step.count(), f, some);
        } else {
          interleave<T, false>(from, step.count(), f, some);
        }
        for (std::int64_t p = 0; p < panels; ++p) {
          add_tiles(room.weights.data() + p * kGroups * kTile, room.values.data(), room.planes, groups, part);
          for (std::int64_t r = p * kTileRows; r < std::min((p + 1) * kTileRows, rows); ++r) {
            for (std::int64_t at = 0; at < some; at += AmxUnit::kRows) {
              add_part<T>(part + at / kTileRows * kTileSums + r % kTileRows * kTileRows, step.block.rescale[r],
                          step.block.sums + r * value_features + f + at);
            }
          }
        }
      }
    });
    return rows;
  }
};

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_DECODE_AMX_INL_H
