// How position and masks enter a tile of scores, for code that is compiled once per SIMD target. `Products` is what
// computed the scores (loop-inl.h).

#if defined(POSENC_SCORES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_SCORES_INL_H
#undef POSENC_SCORES_INL_H
#else
#define POSENC_SCORES_INL_H
#endif

#include <algorithm>

#include "attention/cpu/masks-inl.h"
#include "attention/cpu/tanh-inl.h"
#include "attention/cpu/vectors-inl.h"
#include "terms/all-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector of scores times the factor that a tile still lacks.
template <class Products> HWY_INLINE VF load_score(const float* HWY_RESTRICT s, int vector, VF factor) {
  if constexpr (Products::kDefersScale) return hn::Mul(load(s, vector), factor);
  return load(s, vector);
}

// score = at(key, vector, score), and the maximum for each query.
template <class Products, class At>
HWY_INLINE void change_scores(Block& block, Tile& tile, float* HWY_RESTRICT tile_max, const At& at) {
  const std::int64_t width = width_of<Products>();
  VF most0 = hn::Set(DF(), kNone), most1 = most0, most2 = most0;
  const VF by = hn::Set(DF(), tile.factor);
  float* HWY_RESTRICT s = block.scores.data() + tile.begin * width;
  for (std::int64_t j = tile.begin; j < tile.end; ++j, s += width) {
    const VF s0 = at(j, 0, load_score<Products>(s, 0, by));
    if constexpr (Products::kVectors == 3) {
      const VF s1 = at(j, 1, load_score<Products>(s, 1, by)), s2 = at(j, 2, load_score<Products>(s, 2, by));
      store(s1, s, 1);
      store(s2, s, 2);
      most1 = hn::Max(most1, s1);
      most2 = hn::Max(most2, s2);
    }
    store(s0, s, 0);
    most0 = hn::Max(most0, s0);
  }
  store(most0, tile_max, 0);
  store(most1, tile_max, 1);
  store(most2, tile_max, 2);
  tile.factor = 1;
}

// The factor, which is positive or 1, is not applied.
template <class Products> void find_row_max(const Block& block, const Tile& tile, float* HWY_RESTRICT tile_max) {
  const std::int64_t width = width_of<Products>();
  VF most0 = hn::Set(DF(), kNone), most1 = most0, most2 = most0;
  const float* HWY_RESTRICT s = block.scores.data() + tile.begin * width;
  for (std::int64_t j = tile.begin; j < tile.end; ++j, s += width) {
    most0 = hn::Max(most0, load(s, 0));
    if constexpr (Products::kVectors == 1) continue;
    most1 = hn::Max(most1, load(s, 1));
    most2 = hn::Max(most2, load(s, 2));
  }
  const VF by = hn::Set(DF(), tile.factor);
  store(hn::Mul(most0, by), tile_max, 0);
  store(hn::Mul(most1, by), tile_max, 1);
  store(hn::Mul(most2, by), tile_max, 2);
}

// Adds the term of the bias. If it is one number for the whole tile, returns that instead of adding it, and finds the
// maximum only if `finds_max`.
template <class Products> float add_term(Block& block, Tile& tile, bool finds_max, float* HWY_RESTRICT tile_max) {
  const terms::Tokens tokens = block.job.tokens();
  const terms::HWY_NAMESPACE::TileContext context{
      block.job.bias,
      tokens,
      {block.b, block.h, tile.first, tile.count, block.first_key + tile.begin, tile.end - tile.begin},
      block.bias_tile.data(),
      block.width};
  float constant = 0;
  terms::HWY_NAMESPACE::with_tile<terms::Lanes::kQueries>(block.bias.tiles, context, [&](const auto& term) HWY_ATTR {
    constant = term.constant;
    if (!term.is_constant()) {
      change_scores<Products>(block, tile, tile_max, [&](std::int64_t j, int vector, VF s) HWY_ATTR {
        return term.add(j - tile.begin, vector, s);
      });
    } else if (finds_max) {
      find_row_max<Products>(block, tile, tile_max);
    }
  });
  return constant;
}

// Adds what vectors that distances select contribute to the scores.
template <class Products> void add_vector_scores(Block& block, Tile& tile, float* HWY_RESTRICT tile_max) {
  add_vectors(block, tile);
  const float* HWY_RESTRICT added = block.bias_tile.data();
  const std::int64_t width = width_of<Products>();
  change_scores<Products>(block, tile, tile_max, [&](std::int64_t j, int vector, VF s) HWY_ATTR {
    return hn::Add(s, load(added + j * width, vector));
  });
}

// c · tanh(score / c), applied before anything is added to the scores.
template <class Products> void cap_scores(Block& block, Tile& tile, float* HWY_RESTRICT tile_max) {
  const auto cap = static_cast<float>(block.job.softcap * kLog2E);
  change_scores<Products>(block, tile, tile_max,
                          [&](std::int64_t, int, VF s) HWY_ATTR { return cap_of(DF(), s, cap); });
}

// Writes −inf where a boolean mask or positions hide a key.
template <class Products> void hide_keys(Block& block, Tile& tile, float* HWY_RESTRICT tile_max) {
  const std::int64_t width = width_of<Products>();
  HWY_ALIGN std::uint32_t words[kKeyBlock / kWordKeys * kMostWidth];  // [words, width]; past the last query, any
  bool hides = false;
  for (std::int64_t i = 0; i < width; ++i) {
    for (std::int64_t j = 0; j < tile.end; j += kWordKeys) {
      std::uint32_t& word = words[j / kWordKeys * width + i];
      const std::int64_t count = std::min(kWordKeys, tile.end - j);
      word = i < tile.count ? seen_by_masks(block.job, block.b, block.h, tile.first + i, block.first_key + j, count)
                            : all_keys(count);
      hides = hides || word != all_keys(count);
    }
  }
  if (!hides) return;
  change_scores<Products>(block, tile, tile_max, [&](std::int64_t j, int vector, VF s) HWY_ATTR {
    const auto seen = hn::LoadU(DU(), words + j / kWordKeys * width + vector * lanes());
    return hide_lanes(s, seen, hn::Set(DU(), std::uint32_t{1} << (j % kWordKeys)));
  });
}

// The masks of scores: added to the score; a masked score becomes −inf, whatever it was.
template <class Products> void mask_scores(Block& block, Tile& tile, float* HWY_RESTRICT tile_max) {
  if (adds_mask(block.job)) {
    const std::int64_t width = width_of<Products>();
    float* const added = block.bias_tile.data() + tile.begin * width;
    load_mask_tile(block.job.mask,
                   {block.b, block.h, tile.first, tile.count, block.first_key + tile.begin, tile.end - tile.begin},
                   width, added);
    change_scores<Products>(block, tile, tile_max, [&](std::int64_t j, int vector, VF s) HWY_ATTR {
      return add_or_hide(s, load(added + (j - tile.begin) * width, vector));
    });
  }
  if (hides_by_words(block.job)) hide_keys<Products>(block, tile, tile_max);
}

inline bool has_padding(const Block& block, std::int64_t j) {
  const AttentionJob& job = block.job;
  return job.key_mask != nullptr && job.key_mask[block.b * job.k.sequence + block.first_key + j] == 0;
}

// Writes −inf where a query does not attend to a key.
template <class Products> void mask_keys(Block& block, Tile& tile, float* HWY_RESTRICT tile_max) {
  HWY_ALIGN float from[kMostWidth] = {}, to[kMostWidth] = {};  // in the tile; empty past the last query
  for (std::int64_t i = 0; i < tile.count; ++i) {
    const KeyRange& key_range = block.job.key_range(block.b, tile.first + i);
    from[i] = static_cast<float>(std::clamp(key_range.begin - block.first_key, std::int64_t{0}, kKeyBlock));
    to[i] = static_cast<float>(std::clamp(key_range.end - block.first_key, std::int64_t{0}, kKeyBlock));
  }
  const VF f0 = load(from, 0), f1 = load(from, 1), f2 = load(from, 2);
  const VF t0 = load(to, 0), t1 = load(to, 1), t2 = load(to, 2);
  const VF none = hn::Set(DF(), kNone);
  change_scores<Products>(block, tile, tile_max, [&](std::int64_t j, int vector, VF s) HWY_ATTR {
    if (has_padding(block, j)) return none;
    const VF key = hn::Set(DF(), static_cast<float>(j));
    const VF f = vector == 0 ? f0 : vector == 1 ? f1 : f2, t = vector == 0 ? t0 : vector == 1 ? t1 : t2;
    return hn::IfThenElse(hn::And(hn::Le(f, key), hn::Lt(key, t)), s, none);
  });
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
