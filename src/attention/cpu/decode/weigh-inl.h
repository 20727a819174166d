// The weights of a decoding step: scores, position and masks, online softmax; for code that is compiled once per SIMD target.

#if defined(POSENC_DECODE_WEIGH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_WEIGH_INL_H
#undef POSENC_DECODE_WEIGH_INL_H
#else
#define POSENC_DECODE_WEIGH_INL_H
#endif

#include <algorithm>
#include <limits>

#include "attention/cpu/decode/dot-inl.h"
#include "attention/cpu/decode/pass-inl.h"
#include "attention/cpu/decode/q8_rows-inl.h"
#include "attention/cpu/masks-inl.h"
#include "attention/cpu/tanh-inl.h"
#include "terms/all-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Adds the term of the bias for one query to the scores of at most kDecodeStep keys, which are padded to whole vectors.
HWY_INLINE void add_term(const AttentionJob& job, const ScoreBias& bias, const TilePlace& place,
                         float* HWY_RESTRICT scores) {
  HWY_ALIGN float room[kDecodeStep + kMostLanes] = {};
  const terms::Tokens tokens = job.tokens();
  const terms::HWY_NAMESPACE::TileContext context{job.bias, tokens, place, room, 0};
  terms::HWY_NAMESPACE::with_tile<terms::Lanes::kKeys>(bias.tiles, context, [&](auto& tile) HWY_ATTR {
    tile.start_row(0);
    const std::int64_t vectors = (place.keys + lanes() - 1) / lanes();
    const VF constant = hn::Set(DF(), tile.constant);
    for (std::int64_t vector = 0; vector < vectors; ++vector) {
      const VF s = load(scores, vector);
      store(tile.is_constant() ? hn::Add(s, constant) : tile.add(0, vector, s), scores, vector);
    }
  });
}

// One step of the online softmax: scores become weights relative to the new row maximum. They have room for a vector
// past the last, whose weights become 0. Returns the factor that rescales the accumulator.
// Calls fetch() after every four vectors.
template <class Fetch> HWY_INLINE float online_softmax(float* HWY_RESTRICT scores, std::int64_t count,
                                                       SoftmaxState& state, const Fetch& fetch) {
  const DF d;
  const std::int64_t n = lanes();
  const float none = -std::numeric_limits<float>::infinity();
  std::fill(scores + count, scores + count + kMostLanes, none);
  VF most = hn::Set(d, state.row_max), m1 = most, m2 = most, m3 = most;
  std::int64_t j = 0;
  for (; j + 4 * n <= count; j += 4 * n) {
    most = hn::Max(most, hn::LoadU(d, scores + j));
    m1 = hn::Max(m1, hn::LoadU(d, scores + j + n));
    m2 = hn::Max(m2, hn::LoadU(d, scores + j + 2 * n));
    m3 = hn::Max(m3, hn::LoadU(d, scores + j + 3 * n));
  }
  for (; j < count; j += n) most = hn::Max(most, hn::LoadU(d, scores + j));
  most = hn::Max(hn::Max(most, m1), hn::Max(m2, m3));
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  const float safe = largest == none ? 0.0f : largest;
  const VF base = hn::Set(d, safe);
  VF total = hn::Zero(d), t1 = total, t2 = total, t3 = total;
  const auto weigh = [&](std::int64_t at) HWY_ATTR {
    const VF p = exp2_of_negative(d, hn::Sub(hn::LoadU(d, scores + at), base));
    hn::StoreU(p, d, scores + at);
    return p;
  };
  for (j = 0; j + 4 * n <= count; j += 4 * n) {
    const VF p0 = weigh(j), p1 = weigh(j + n), p2 = weigh(j + 2 * n), p3 = weigh(j + 3 * n);
    total = hn::Add(total, p0);
    t1 = hn::Add(t1, p1);
    t2 = hn::Add(t2, p2);
    t3 = hn::Add(t3, p3);
    fetch();
  }
  for (; j < count; j += n) total = hn::Add(total, weigh(j));
  total = hn::Add(hn::Add(total, t1), hn::Add(t2, t3));
  const float rescale = hn::GetLane(exp2_of_negative(d, hn::Set(d, state.row_max - safe)));
  state.row_max = largest;
  state.row_sum = state.row_sum * rescale + hn::GetLane(hn::SumOfLanes(d, total));
  return rescale;
}

// Adds the mask of one query to the scores of at most kDecodeStep keys, which are padded to whole vectors.
HWY_INLINE void add_mask(const AttentionJob& job, const TilePlace& place, float* HWY_RESTRICT scores) {
  HWY_ALIGN float added[kDecodeStep + kMostLanes];
  load_mask_row(job.mask, place.b, place.h, place.first_query, place.first_key, place.keys, added);
  std::fill(added + place.keys, added + place.keys + kMostLanes, 0.0f);
  for (std::int64_t j = 0; j < place.keys; j += lanes()) {
    hn::StoreU(add_or_hide(hn::LoadU(DF(), scores + j), hn::Load(DF(), added + j)), DF(), scores + j);
  }
}

// Writes −inf where padding, a boolean mask or positions hide a key from one query; the same keys.
HWY_INLINE void hide_keys_of_row(const AttentionJob& job, const TilePlace& place, float* HWY_RESTRICT scores) {
  HWY_ALIGN std::uint32_t bits[kWordKeys];
  for (std::int64_t j = 0; j < kWordKeys; ++j) bits[j] = std::uint32_t{1} << j;
  for (std::int64_t first = 0; first < place.keys; first += kWordKeys) {
    const std::int64_t count = std::min(kWordKeys, place.keys - first), key = place.first_key + first;
    std::uint32_t seen = seen_by_masks(job, place.b, place.h, place.first_query, key, count);
    if (job.key_mask != nullptr) seen &= seen_by_key_mask(job, place.b, key, count);
    if (seen == all_keys(count)) continue;
    for (std::int64_t j = 0; j < count; j += lanes()) {
      float* const at = scores + first + j;
      hn::StoreU(hide_lanes(hn::LoadU(DF(), at), hn::Set(DU(), seen), hn::Load(DU(), bits + j)), DF(), at);
    }
  }
}

// Applies softcap, bias and mask to the keys `low` to `high` of a step.
inline void adjust_row(SplitPass& pass, std::int64_t r, const Step& step, std::int64_t low, std::int64_t high) {
  const AttentionJob& job = pass.job;
  const std::int64_t h = pass.head(r), i = pass.query(r), count = high - low;
  float* const scores = step.scores(r) + (low - step.begin);
  if (job.softcap > 0) {
    const auto cap = static_cast<float>(job.softcap * kLog2E);
    for (std::int64_t j = 0; j < count; j += lanes()) {
      hn::StoreU(cap_of(DF(), hn::LoadU(DF(), scores + j), cap), DF(), scores + j);
    }
  }
  add_term(job, pass.bias, {pass.run.b, h, i, 1, low, count}, scores);
  if (adds_mask(job)) add_mask(job, {pass.run.b, h, i, 1, low, count}, scores);
  if (job.key_mask != nullptr || hides_by_words(job))
    hide_keys_of_row(job, {pass.run.b, h, i, 1, low, count}, scores);
}

inline void score_step(SplitPass& pass, const Step& step) {
  const std::int64_t features = pass.job.q.features;
  const StepRows keys = pass.memory.k.load(pass.run.b, pass.run.g, step.begin, step.end);
  if (pass.native.score(step, keys)) return;
  const auto score = [&](auto kind, const StepRows& from) HWY_ATTR {
    score_rows(kind, pass.q.data(), pass.rows, from, step.count(), features, step.scores(0), pass.stride);
  };
  if (!pass.memory.widens_keys) {
    with_rows(pass.memory.k, [&](auto kind) HWY_ATTR { score(kind, keys); });
    return;
  }
  std::int64_t offsets[kDecodeStep + 8] = {};
  score(float{}, widened(pass.memory.k, keys, step.count(), pass.memory.wide_keys.data(), offsets));
}

// The scores of a step, with what position and masks do to them.
inline void score_and_adjust(SplitPass& pass, const Step& step) {
  score_step(pass, step);
  for (std::int64_t r = 0; r < pass.rows; ++r) {
    const KeyRange seen = pass.visible_keys(r, step.begin, step.end);
    for (std::int64_t at = seen.begin; pass.adjusts && at < seen.end; at += kDecodeStep) {
      adjust_row(pass, r, step, at, std::min(at + kDecodeStep, seen.end));
    }
  }
}

// The weights that the online softmax computes from the scores of a block.
inline void weigh_rows(SplitPass& pass, const KeyBlock& block) {
  const auto fetch = [&]() HWY_ATTR { pass.native.fetch_beside_weights(); };
  for (std::int64_t r = 0; r < pass.rows; ++r) {
    const KeyRange seen = pass.visible_keys(r, block.begin, block.end);
    block.rescale[r] = 1;
    if (seen.begin >= seen.end) continue;
    float* const scores = block.scores + r * block.stride + (seen.begin - block.begin);
    block.rescale[r] = online_softmax(scores, seen.end - seen.begin, block.states[r], fetch);
  }
}

// Scores and weights of keys `first` to `last` of a split.
inline void weigh_block(HeadPasses& passes, std::int64_t split, std::int64_t first, std::int64_t last) {
  for (SplitPass& pass : passes.all)
    pass.native.begin_block(passes.memory.k, passes.memory.v, pass.run.b, pass.run.g, first, last);
  passes.each_step(split, first, last,
                   [&](SplitPass& pass, const Step& step) HWY_ATTR { score_and_adjust(pass, step); });
  for (SplitPass& pass : passes.all) weigh_rows(pass, pass.block_of(split, first, last));
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
