// Flash-Decoding (Dao et al., 2023): with few queries and many keys, most of the time goes into reading the cache, so
// every key and value is read once, in place. Keys are divided into splits of a fixed size (split-KV). Each split runs
// its own online softmax over key blocks and yields row_max, row_sum and an output accumulator for every query; these
// are merged in the order of the splits, so results do not depend on the number of threads. The query heads that
// share a key head (GQA) share its reads.

#include "attention/cpu/decode.h"

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cpu/fetch.h"
#include "kernels/cpu/parallel.h"
#include "posenc/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/decode.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// after foreach_target.h, so that they are compiled for each target
#include "attention/cpu/decode_16-inl.h"
#include "attention/cpu/decode_rows-inl.h"
#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/pack-inl.h"
#include "attention/cpu/panel-inl.h"
#include "attention/cpu/tanh-inl.h"
#include "terms/all-inl.h"

#ifndef POSENC_DECODE_SPLIT
#define POSENC_DECODE_SPLIT
namespace posenc::attend::cpu {

// A split of keys has its own online softmax. With few rows, all keys of several splits (a run) are read before
// their values, so that memory is read in one direction for longer: each change costs about 2 µs on a Neoverse V1,
// and alternating 2048 16-bit keys with their values takes a fifth more time than 16,384. With many rows, steps of
// keys and of values alternate, so that they stay in the L1 cache for all rows.
constexpr std::int64_t kSplit = 2048, kFewRows = 4, kMostSplits = 16;  // kMostSplits: of a run
inline const RowRotation kNoRotation = {};                             // values are never rotated

// The state of the online softmax for one row of scores and one split of keys.
struct SoftmaxState {
  float row_max, row_sum;
};

// Some splits of keys of one head of one sequence.
struct SplitRun {
  std::int64_t b, g, begin, end;
  SoftmaxState* states;  // [splits, rows]
  float* sums;           // [splits, rows, value features]
  std::int64_t splits() const { return (end - begin + kSplit - 1) / kSplit; }
};

}  // namespace posenc::attend::cpu
#endif

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
HWY_INLINE float online_softmax(float* HWY_RESTRICT scores, std::int64_t count, SoftmaxState& state) {
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
  }
  for (; j < count; j += n) total = hn::Add(total, weigh(j));
  total = hn::Add(hn::Add(total, t1), hn::Add(t2, t3));
  const float rescale = hn::GetLane(exp2_of_negative(d, hn::Set(d, state.row_max - safe)));
  state.row_max = largest;
  state.row_sum = state.row_sum * rescale + hn::GetLane(hn::SumOfLanes(d, total));
  return rescale;
}

// The rows of a step of K or V: read in place, or widened (and rotated) into a buffer.
struct RowReader {
  const HeadTensor<const void>& x;
  const RowRotation& rotation;
  bool in_place = x.type != DataType::kF64 && x.feature_stride == 1 && rotation.cos_sin == nullptr;
  DataType type = in_place ? x.type : DataType::kF32;
  AlignedVector<float> buffer =
      AlignedVector<float>(in_place ? 0 : static_cast<std::size_t>(kDecodeStep * x.features));
  std::int64_t step = (in_place ? x.token_stride : x.features) * size_of(type);
  std::int64_t ahead =
      in_place ? kernels::cpu::ahead_for(x.batch * x.heads * x.sequence * x.features * size_of(type)) : 0;
  std::int64_t ready = 0;  // how many offsets are valid for consecutive rows
  std::int64_t offsets[kLongStep + 8] = {};

  StepRows load(std::int64_t b, std::int64_t g, std::int64_t begin, std::int64_t end) {
    if (!in_place) load_rows(x, rotation, b, g, begin, end, x.features, buffer.data());
    const bool is_paged = in_place && x.pages != nullptr;
    const auto* first = in_place ? static_cast<const std::byte*>(x.data) + g * x.head_stride * size_of(x.type)
                                 : reinterpret_cast<const std::byte*>(buffer.data());
    const std::int64_t count = end - begin;
    if (is_paged) {
      for (std::int64_t t = begin; t < end;) {
        const std::int64_t page = x.pages[b * x.page_row + t / x.page_tokens], place = t % x.page_tokens;
        const std::int64_t last = std::min(end, t - place + x.page_tokens);
        std::int64_t offset = page * x.batch_stride * size_of(x.type) + place * step;
        for (; t < last; ++t, offset += step) offsets[t - begin] = offset;
      }
    } else {
      if (in_place) first += b * x.batch_stride * size_of(x.type) + begin * step;
      for (; ready < count; ++ready) offsets[ready] = ready * step;
    }
    if (count % 8 != 0) {
      for (std::int64_t j = count; j % 8 != 0; ++j) offsets[j] = offsets[count - 1];
      ready = std::min(ready, count);
    }
    return {first, offsets, ahead, is_paged ? 0 : step};
  }
};

// Calls visit(T{}) with the type of the rows that are read in place.
template <class Visitor> HWY_INLINE void with_rows(const RowReader& rows, const Visitor& visit) {
  if (rows.type == DataType::kF16) {
    visit(Half{});
  } else if (rows.type == DataType::kBF16) {
    visit(BFloat16{});
  } else {
    visit(float{});
  }
}

// One run of keys and all queries that share its key head.
struct SplitPass {
  const AttentionJob& job;
  const ScoreBias& bias;
  const SplitRun& run;
  std::int64_t rows = job.group * job.q.sequence;
  std::int64_t block = rows < kFewRows ? kSplit : kDecodeStep;
  std::int64_t blocks = rows < kFewRows ? run.splits() : 1;  // whose scores are kept at the same time
  bool adjusts = job.softcap > 0 || !std::holds_alternative<terms::NoTiles>(bias.tiles) || job.has_masks();  // scores
  RowReader k{.x = job.k, .rotation = job.k_rotation};
  RowReader v{.x = job.v, .rotation = kNoRotation};
  std::int64_t step = rows == 1 && k.in_place && v.in_place ? kLongStep : kDecodeStep;  // maximum keys per step
  AlignedVector<float> q = AlignedVector<float>(static_cast<std::size_t>(rows * job.q.features));
#if POSENC_NATIVE_16
  // 16-bit queries in one plane or, for f16, two; and temporary room for four of them
  AlignedVector<std::uint16_t> narrow_q =
      AlignedVector<std::uint16_t>(k.type == DataType::kF32 ? 0 : q.size() * (k.type == DataType::kF16 ? 2 : 1));
  AlignedVector<std::uint16_t> plain_q =
      AlignedVector<std::uint16_t>(k.type == DataType::kBF16 ? static_cast<std::size_t>(4 * job.q.features) : 0);
  Queries16 q_16 = {};  // empty: keys are multiplied in f32
  // the sum of two bf16 is precise enough for weights if the result is bf16, not f32; that of two f16 is for any
  // result
  bool adds_bf16 =
      v.type == DataType::kBF16 && job.out.type == DataType::kBF16 && job.v.features % 8 == 0 && has_bf16_dots();
  bool adds_f16 = v.type == DataType::kF16 && job.v.features % 64 == 0 && has_f16_products();
  AlignedVector<std::uint16_t> weights_16 =
      AlignedVector<std::uint16_t>(adds_bf16 ? static_cast<std::size_t>(8 * kDecodeStep) : 0);  // of four rows
#endif
  // 16-bit values that are multiplied in f32 are widened once if eight or more rows use them.
  bool widens_values = rows >= 2 * kFewRows && v.in_place && v.type != DataType::kF32;
  AlignedVector<float> wide_values =
      AlignedVector<float>(widens_values ? static_cast<std::size_t>(kDecodeStep * job.v.features) : 0);
  // So are keys, from 32 rows on; with fewer, it costs more than it saves.
  bool widens_keys = rows >= 8 * kFewRows && k.in_place && k.type != DataType::kF32;
  AlignedVector<float> wide_keys =
      AlignedVector<float>(widens_keys ? static_cast<std::size_t>(kDecodeStep * job.k.features) : 0);
  std::int64_t stride = block + kMostLanes;  // of a row of scores, padded because vectors may pass its end
  AlignedVector<float> scores = AlignedVector<float>(static_cast<std::size_t>(blocks * rows * stride));
  // [blocks, rows]: for the sums so far; 1 once they have been rescaled
  AlignedVector<float> rescale = AlignedVector<float>(static_cast<std::size_t>(blocks * rows));

  std::int64_t head(std::int64_t r) const { return run.g * job.group + r / job.q.sequence; }
  std::int64_t query(std::int64_t r) const { return r % job.q.sequence; }
};

// The keys of one split; where their scores are kept, and where their softmax and sums go.
struct KeyBlock {
  std::int64_t begin, end;
  float* scores;         // [rows, stride]
  float* rescale;        // [rows]
  SoftmaxState* states;  // [rows]
  float* sums;           // [rows, value features]
};
// Keys `begin` to `end` of a block, at most pass.step of them.
struct Step {
  const KeyBlock& block;
  std::int64_t begin, end;
  std::int64_t count() const { return end - begin; }
};
HWY_INLINE float* scores_of(const SplitPass& pass, std::int64_t r, const Step& step) {
  return step.block.scores + r * pass.stride + (step.begin - step.block.begin);
}
template <class Visitor>
HWY_INLINE void each_step(const SplitPass& pass, const KeyBlock& block, const Visitor& visit) {
  for (std::int64_t at = block.begin; at < block.end; at += pass.step) {
    visit(Step{block, at, std::min(at + pass.step, block.end)});
  }
}

// Applies softcap, bias and mask to the keys `low` to `high` of a step.
void adjust_row(SplitPass& pass, std::int64_t r, const Step& step, std::int64_t low, std::int64_t high) {
  const AttentionJob& job = pass.job;
  const std::int64_t h = pass.head(r), i = pass.query(r), count = high - low;
  float* const scores = scores_of(pass, r, step) + (low - step.begin);
  if (job.softcap > 0) {
    const auto cap = static_cast<float>(job.softcap * kLog2E);
    for (std::int64_t j = 0; j < count; j += lanes()) {
      hn::StoreU(cap_of(DF(), hn::LoadU(DF(), scores + j), cap), DF(), scores + j);
    }
  }
  add_term(job, pass.bias, {pass.run.b, h, i, 1, low, count}, scores);
  if (job.has_masks()) {
    for (std::int64_t j = 0; j < count; ++j) {
      if (job.is_hidden(pass.run.b, h, i, low + j)) {
        scores[j] = -std::numeric_limits<float>::infinity();
      } else if (job.mask.data != nullptr) {
        scores[j] += static_cast<float>(kLog2E * job.mask.at(pass.run.b, h, i, low + j));
      }
    }
  }
}

// Calls visit(rows, first, count, rescale) for kDecodeStep rows at a time, so that sums of rounded products stay
// short. The previous sums are rescaled only once.
template <class Visitor>
HWY_INLINE void for_each_64_rows(const StepRows& values, std::int64_t count, float rescale, const Visitor& visit) {
  with_places(values, count, [&](const auto& rows) HWY_ATTR {
    for (std::int64_t at = 0; at < count; at += kDecodeStep) {
      visit(rows.from(at), at, std::min(kDecodeStep, count - at), at == 0 ? rescale : 1.0f);
    }
  });
}

// Adds the values of one query's visible keys only: 0 times a NaN is not 0.
template <class V> HWY_INLINE void add_values(SplitPass& pass, std::int64_t r, const Step& step, const StepRows& rows,
                                              std::int64_t low, std::int64_t high) {
  const AttentionJob& job = pass.job;
  const std::int64_t features = job.v.features;
  const float* const weights = scores_of(pass, r, step) + (low - step.begin);
  const StepRows values = rows.from(low - step.begin);
  float* const sums = step.block.sums + r * features;
  const float rescale = step.block.rescale[r];
  if (!job.has_masks()) {
    for_each_64_rows(values, high - low, rescale,
                     [&](const auto& some, std::int64_t at, std::int64_t few, float by)
                         HWY_ATTR { add_rows<V>(weights + at, some, few, features, by, sums); });
    return;
  }
  add_rows<V>(weights, values, 0, features, rescale, sums);
  for (std::int64_t j = 0; j < high - low; ++j) {
    if (job.is_hidden(pass.run.b, pass.head(r), pass.query(r), low + j)) continue;
    add_rows<V>(weights + j, values.from(j), 1, features, 1.0f, sums);
  }
}

// Widens 16-bit rows, at most kDecodeStep of them, to f32 in a buffer.
HWY_INLINE StepRows widened(const RowReader& reader, const StepRows& rows, std::int64_t count, float* to,
                            std::int64_t* offsets) {
  const std::int64_t features = reader.x.features, bytes = features * static_cast<std::int64_t>(sizeof(float));
  with_rows(reader, [&](auto kind) HWY_ATTR {
    using T = decltype(kind);
    for (std::int64_t j = 0; j < count; ++j) {
      const auto* const row = static_cast<const T*>(rows[j]);
      fetch_row_later(row, features * static_cast<std::int64_t>(sizeof(T)), rows.ahead);
      widen_row(row, 1, features, to + j * features);
      offsets[j] = j * bytes;
    }
  });
  for (std::int64_t j = count; j % 8 != 0; ++j) offsets[j] = offsets[count - 1];
  return {reinterpret_cast<const std::byte*>(to), offsets, 0, bytes};
}

void score_step(SplitPass& pass, const Step& step) {
  const std::int64_t features = pass.job.q.features;
  const StepRows keys = pass.k.load(pass.run.b, pass.run.g, step.begin, step.end);
  float* const scores = scores_of(pass, 0, step);
#if POSENC_NATIVE_16
  if (pass.q_16.narrow != nullptr || pass.q_16.wide != nullptr) {
    score_rows_16(pass.q_16, pass.rows, keys, step.count(), features, scores, pass.stride);
    return;
  }
#endif
  if (pass.widens_keys) {
    std::int64_t offsets[kDecodeStep + 8] = {};
    const StepRows wide = widened(pass.k, keys, step.count(), pass.wide_keys.data(), offsets);
    score_rows<float>(pass.q.data(), pass.rows, wide, step.count(), features, scores, pass.stride);
    return;
  }
  with_rows(pass.k, [&](auto kind) HWY_ATTR {
    score_rows<decltype(kind)>(pass.q.data(), pass.rows, keys, step.count(), features, scores, pass.stride);
  });
}

// Adds the values of a step for the rows from `done` on, multiplied in f32. Not inline, because the code around the
// call needs all registers.
HWY_NOINLINE void add_in_f32(SplitPass& pass, const Step& step, const StepRows& values, std::int64_t done) {
  const std::int64_t features = pass.job.v.features, count = step.count();
  const bool takes_fours = features % (2 * lanes()) == 0;
  const auto add = [&](auto kind, const StepRows& from) HWY_ATTR {
    using V = decltype(kind);
    const float* const weights = scores_of(pass, 0, step);
    const float* const rescale = step.block.rescale;
    std::int64_t r = done;
    for (; takes_fours && r + 4 <= pass.rows; r += 4) {
      add_rows_4<V>(weights + r * pass.stride, pass.stride, from, count, features, rescale + r, r == 0,
                    step.block.sums + r * features);
    }
    for (; r < pass.rows; ++r) {
      for_each_64_rows(
          from, count, rescale[r], [&](const auto& rows, std::int64_t at, std::int64_t few, float by) HWY_ATTR {
            add_rows<V>(weights + r * pass.stride + at, rows, few, features, by, step.block.sums + r * features);
          });
    }
  };
  if (!pass.widens_values) {
    with_rows(pass.v, [&](auto kind) HWY_ATTR { add(kind, values); });
    return;
  }
  std::int64_t offsets[kDecodeStep + 8] = {};
  add(float{}, widened(pass.v, values, count, pass.wide_values.data(), offsets));
}

// Adds the values of a step in which every query attends to all keys.
void add_step(SplitPass& pass, const Step& step, const StepRows& values) {
  std::int64_t done = 0;
#if POSENC_NATIVE_16
  const std::int64_t features = pass.job.v.features, count = step.count();
  const float* const rescale = step.block.rescale;
  float* const weights = scores_of(pass, 0, step);
  for (; pass.adds_bf16 && done + 4 <= pass.rows; done += 4) {
    pack_weights_4(weights + done * pass.stride, pass.stride, count, pass.weights_16.data());
    add_rows_16_4(pass.weights_16.data(), values, count, features, rescale + done, done == 0,
                  step.block.sums + done * features);
  }
  const bool is_one_by_one = pass.adds_bf16 || (pass.adds_f16 && pass.rows < kFewRows);
  for (; is_one_by_one && done < pass.rows; ++done) {
    float* const row = weights + done * pass.stride;
    float* const sums = step.block.sums + done * features;
    if (pass.adds_bf16) {
      for_each_64_rows(values, count, rescale[done],
                       [&](const auto& rows, std::int64_t at, std::int64_t few, float by)
                           HWY_ATTR { add_rows_16(row + at, rows, few, features, by, sums); });
    } else {
      for_each_64_rows(values, count, rescale[done],
                       [&](const auto& rows, std::int64_t at, std::int64_t few, float by)
                           HWY_ATTR { add_rows_f16(row + at, rows, few, features, by, sums); });
    }
  }
#endif
  if (done < pass.rows) add_in_f32(pass, step, values, done);
}

// The keys among `begin` to `end` that row r attends to.
HWY_INLINE KeyRange visible_keys_of(const SplitPass& pass, std::int64_t r, std::int64_t begin, std::int64_t end) {
  const KeyRange& key_range = pass.job.key_range(pass.run.b, pass.query(r));
  return {std::max(begin, key_range.begin), std::min(end, key_range.end), 0};
}

// The scores of a block, and the weights that the online softmax computes from them.
void weigh_block(SplitPass& pass, const KeyBlock& block) {
  each_step(pass, block, [&](const Step& step) HWY_ATTR {
    score_step(pass, step);
    for (std::int64_t r = 0; r < pass.rows; ++r) {
      const KeyRange seen = visible_keys_of(pass, r, step.begin, step.end);
      for (std::int64_t at = seen.begin; pass.adjusts && at < seen.end; at += kDecodeStep) {
        adjust_row(pass, r, step, at, std::min(at + kDecodeStep, seen.end));
      }
    }
  });
  for (std::int64_t r = 0; r < pass.rows; ++r) {
    const KeyRange seen = visible_keys_of(pass, r, block.begin, block.end);
    block.rescale[r] = 1;
    if (seen.begin >= seen.end) continue;
    float* const scores = block.scores + r * pass.stride + (seen.begin - block.begin);
    block.rescale[r] = online_softmax(scores, seen.end - seen.begin, block.states[r]);
  }
}

void add_block(SplitPass& pass, const KeyBlock& block) {
  each_step(pass, block, [&](const Step& step) HWY_ATTR {
    const StepRows values = pass.v.load(pass.run.b, pass.run.g, step.begin, step.end);
    bool all_see_all = !pass.job.has_masks();
    for (std::int64_t r = 0; r < pass.rows; ++r) {
      const KeyRange seen = visible_keys_of(pass, r, step.begin, step.end);
      if (seen.begin != step.begin || seen.end != step.end) all_see_all = false;
    }
    if (all_see_all) {
      add_step(pass, step, values);
      std::fill(block.rescale, block.rescale + pass.rows, 1.0f);
      return;
    }
    with_rows(pass.v, [&](auto kind) HWY_ATTR {
      using V = decltype(kind);
      for (std::int64_t r = 0; r < pass.rows; ++r) {
        const KeyRange seen = visible_keys_of(pass, r, step.begin, step.end);
        if (seen.begin >= seen.end) continue;
        add_values<V>(pass, r, step, values, seen.begin, seen.end);
        block.rescale[r] = 1;
      }
    });
  });
}

#if POSENC_NATIVE_16
// Queries of the keys' type that were not rotated are multiplied with the keys directly, and the factor is applied
// later. Others are used in two planes with f16 keys. With bf16 keys, which are then widened, one to three of them
// are rearranged; four or more are processed four at a time (score_rows).
void plan_queries_16(SplitPass& pass, float factor) {
  if (pass.k.type == DataType::kF16) {
    std::uint16_t *const upper = pass.narrow_q.data(), *const lower = upper + pass.q.size();
    const float scale = split_f16(pass.q.data(), pass.q.size(), upper, lower);
    if (scale == 0.0f) return;
    const bool is_one_plane =
        std::all_of(lower, lower + pass.q.size(), [](std::uint16_t x) { return (x & 0x7FFF) == 0; });
    pass.q_16 = {.narrow = upper, .lower = is_one_plane ? nullptr : lower, .is_f16 = true, .factor = factor * scale};
    return;
  }
  bool all_narrow = true;
  for (std::size_t i = 0; i < pass.q.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(pass.q[i]);
    pass.narrow_q[i] = static_cast<std::uint16_t>(bits >> 16);
    all_narrow = all_narrow && (bits & 0xFFFFU) == 0;
  }
  if (all_narrow) {
    const std::int64_t features = pass.job.q.features;
    for (std::int64_t r = 0; r + 4 <= pass.rows; r += 4) {
      std::uint16_t* const four = pass.narrow_q.data() + r * features;
      std::copy(four, four + 4 * features, pass.plain_q.begin());
      pair_rows(pass.plain_q.data(), pass.plain_q.data() + features, features, four);
      pair_rows(pass.plain_q.data() + 2 * features, pass.plain_q.data() + 3 * features, features,
                four + 2 * features);
    }
    pass.q_16 = {.narrow = pass.narrow_q.data(), .factor = factor};
  } else if (pass.rows < kFewRows) {
    for (std::size_t i = 0; i < pass.q.size(); i += 8) {
      const float* const x = pass.q.data() + i;
      const float apart[] = {x[0], x[2], x[4], x[6], x[1], x[3], x[5], x[7]};
      std::copy(apart, apart + 8, pass.q.begin() + static_cast<std::ptrdiff_t>(i));
    }
    pass.q_16 = {.wide = pass.q.data()};
  }
}
#endif

void attend_splits(const AttentionJob& job, const ScoreBias& bias, const SplitRun& run) {
  // keys that no query attends to (past a length, outside a window) are not read
  const KeyRange seen = job.visible_keys(run.b);
  const std::int64_t begin = std::max(run.begin, seen.begin), end = std::min(run.end, seen.end);
  if (begin >= end && kernels::counter_in_use() == nullptr) return;
  SplitPass pass{job, bias, run};
  if (kernels::counter_in_use() != nullptr) {  // only count the memory
    kernels::take_and_give(rotation_scratch(job));
    return;
  }
  for (std::int64_t r = 0; r < pass.rows; ++r) {
    const std::int64_t i = pass.query(r);
    load_rows(job.q, job.q_rotation, run.b, pass.head(r), i, i + 1, job.q.features,
              pass.q.data() + r * job.q.features);
  }
  const auto factor = static_cast<float>(job.scale * kLog2E);
#if POSENC_NATIVE_16
  const bool has_dots = pass.k.type == DataType::kBF16
                            ? has_bf16_dots()
                            : pass.k.type == DataType::kF16 && has_f16_products() && !pass.widens_keys;
  if (has_dots && job.q.features % 8 == 0) plan_queries_16(pass, factor);
  if (pass.q_16.narrow == nullptr)
#endif
  {
    for (float& x : pass.q) x *= factor;
  }
  const auto block_of = [&](std::int64_t split, std::int64_t first, std::int64_t last) {
    const std::int64_t kept = pass.blocks > 1 ? split : 0;
    return KeyBlock{first,
                    last,
                    pass.scores.data() + kept * pass.rows * pass.stride,
                    pass.rescale.data() + kept * pass.rows,
                    run.states + split * pass.rows,
                    run.sums + split * pass.rows * job.v.features};
  };
  const auto each_block = [&](const auto& visit) HWY_ATTR {
    for (std::int64_t split = 0; split < run.splits(); ++split) {
      const std::int64_t first = run.begin + split * kSplit, last = std::min(first + kSplit, end);
      for (std::int64_t at = std::max(first, begin); at < last; at += pass.block) {
        visit(block_of(split, at, std::min(at + pass.block, last)));
      }
    }
  };
  if (pass.rows >= kFewRows) {
    each_block([&](const KeyBlock& block) HWY_ATTR {
      weigh_block(pass, block);
      add_block(pass, block);
    });
    return;
  }
  each_block([&](const KeyBlock& block) HWY_ATTR { weigh_block(pass, block); });
  each_block([&](const KeyBlock& block) HWY_ATTR { add_block(pass, block); });
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::attend::cpu {
namespace {

HWY_EXPORT(attend_splits);

// Merges the splits of one row, in order.
void write_row(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i,
               const AlignedVector<SoftmaxState>& states, const AlignedVector<float>& sums, std::int64_t first,
               std::int64_t step, std::int64_t splits) {
  const float none = -std::numeric_limits<float>::infinity();
  const float sink = job.sinks == nullptr ? none : static_cast<float>(job.sinks[h] * kLog2E);
  float largest = sink == sink ? sink : none;
  bool is_number = sink == sink;
  for (std::int64_t c = 0; c < splits; ++c) {
    const SoftmaxState& state = states[static_cast<std::size_t>(first + c * step)];
    if (state.row_sum != state.row_sum) is_number = false;
    largest = std::max(largest, state.row_max);
  }
  const std::int64_t features = job.v.features;
  AlignedVector<double> row(static_cast<std::size_t>(features), 0.0);
  double total = sink == none ? 0.0 : std::exp2(static_cast<double>(sink) - static_cast<double>(largest));
  for (std::int64_t c = 0; c < splits; ++c) {
    const std::int64_t at = first + c * step;
    const SoftmaxState& state = states[static_cast<std::size_t>(at)];
    if (state.row_sum == 0.0f) continue;
    const double weight = std::exp2(static_cast<double>(state.row_max) - static_cast<double>(largest));
    total += weight * static_cast<double>(state.row_sum);
    for (std::int64_t f = 0; f < features; ++f) {
      row[static_cast<std::size_t>(f)] +=
          weight * static_cast<double>(sums[static_cast<std::size_t>(at * features + f)]);
    }
  }
  if (!is_number) total = std::numeric_limits<double>::quiet_NaN();
  kernels::with_type(job.out.type, [&](auto kind) {
    using T = decltype(kind);
    T* out = job.out.row<T>(b, h, i);
    for (std::int64_t f = 0; f < features; ++f) {
      const double value = total == 0 ? 0.0 : row[static_cast<std::size_t>(f)] / total;
      out[f * job.out.feature_stride] = numerics::narrow<T>(value);
    }
  });
  if (job.logsumexp.data == nullptr) return;
  *job.logsumexp.row<float>(b, h, i) =
      static_cast<float>(total == 0 ? std::log2(total) : (static_cast<double>(largest) + std::log2(total)) / kLog2E);
}

}  // namespace

bool is_decoding(const AttentionJob& job, const ScoreBias& bias) {
  const std::int64_t rows = job.group * job.q.sequence;
  const bool has_few_rows =
      rows <= kFewDecodeRows || (rows <= kMostDecodeRows && job.q.sequence <= kMostDecodeQueries);
  return has_few_rows && !bias.has_vectors();
}

void decode(const AttentionJob& job, const ScoreBias& bias) {
  const std::int64_t rows = job.group * job.q.sequence, heads = job.q.batch * job.k.heads;
  // skip the splits that no query attends to, so that the cost of a window depends on its size
  std::int64_t first_split = std::numeric_limits<std::int64_t>::max(), last_split = 0;
  for (std::int64_t b = 0; b < job.k.batch; ++b) {
    const KeyRange seen = job.visible_keys(b);
    if (seen.begin >= seen.end) continue;
    first_split = std::min(first_split, seen.begin / kSplit);
    last_split = std::max(last_split, (seen.end + kSplit - 1) / kSplit);
  }
  const std::int64_t splits = std::max<std::int64_t>(last_split - first_split, 0);
  AlignedVector<SoftmaxState> states(static_cast<std::size_t>(heads * splits * rows),
                                     {-std::numeric_limits<float>::infinity(), 0.0f});
  AlignedVector<float> sums(states.size() * static_cast<std::size_t>(job.v.features), 0.0f);
  // Long runs, but enough of them for all threads. A split's result is the same bytes in any run.
  std::int64_t of_run = rows < kFewRows ? std::clamp<std::int64_t>(splits, 1, kMostSplits) : 1;
  const auto runs = [&] { return (splits + of_run - 1) / of_run; };
  const std::int64_t wanted = threads() > 1 && kernels::counter_in_use() == nullptr ? 4 * threads() : 1;
  while (of_run > 1 && heads * runs() < wanted) of_run /= 2;
  kernels::cpu::parallel_for(heads * runs(), 1, [&](std::int64_t begin, std::int64_t end) {
    // every run needs at most as much memory as the first, and returns it
    if (kernels::counter_in_use() != nullptr) end = std::min(end, begin + 1);
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t head = at / runs(), split = at % runs() * of_run;
      const std::int64_t first = (first_split + split) * kSplit, state = (head * splits + split) * rows;
      HWY_DYNAMIC_DISPATCH(attend_splits)
      (job, bias,
       {head / job.k.heads, head % job.k.heads, first,
        std::min({first + of_run * kSplit, (first_split + splits) * kSplit, job.k.sequence}), states.data() + state,
        sums.data() + state * job.v.features});
    }
  });
  if (kernels::counter_in_use() != nullptr) {  // only count the memory
    kernels::take_and_give(static_cast<std::size_t>(job.v.features) * sizeof(double));
    return;
  }
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t r = 0; r < rows; ++r) {
      write_row(job, head / job.k.heads, head % job.k.heads * job.group + r / job.q.sequence, r % job.q.sequence,
                states, sums, head * splits * rows + r, rows, splits);
    }
  }
}

}  // namespace posenc::attend::cpu
#endif
