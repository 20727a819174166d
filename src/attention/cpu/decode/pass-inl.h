// What the pass over a run of keys needs, for code that is compiled once per SIMD target.

#if defined(POSENC_DECODE_PASS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_PASS_INL_H
#undef POSENC_DECODE_PASS_INL_H
#else
#define POSENC_DECODE_PASS_INL_H
#endif

#include <algorithm>
#include <variant>

#include "attention/cpu/decode/native_16-inl.h"
#include "attention/cpu/score_bias.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

inline const RowRotation kNoRotation = {};  // values are never rotated

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
  NativeProducts native{job, k, v, rows};
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
  AlignedVector<float> rescale = AlignedVector<float>(static_cast<std::size_t>(blocks * rows));

  std::int64_t head(std::int64_t r) const { return run.g * job.group + r / job.q.sequence; }
  std::int64_t query(std::int64_t r) const { return r % job.q.sequence; }
  // The keys among `begin` to `end` that row r attends to.
  HWY_INLINE KeyRange visible_keys(std::int64_t r, std::int64_t begin, std::int64_t end) const {
    const KeyRange& key_range = job.key_range(run.b, query(r));
    return {std::max(begin, key_range.begin), std::min(end, key_range.end), 0};
  }
  // Keys `first` to `last` of a split.
  KeyBlock block_of(std::int64_t split, std::int64_t first, std::int64_t last) {
    const std::int64_t kept = blocks > 1 ? split : 0;
    return {first,
            last,
            stride,
            scores.data() + kept * rows * stride,
            rescale.data() + kept * rows,
            run.states + split * rows,
            run.sums + split * rows * job.v.features};
  }
  template <class Visitor> HWY_INLINE void each_step(const KeyBlock& keys, const Visitor& visit) const {
    for (std::int64_t at = keys.begin; at < keys.end; at += step) {
      visit(Step{keys, at, std::min(at + step, keys.end)});
    }
  }

  // The queries, times the factor of the scores unless that is applied later.
  void load_queries() {
    for (std::int64_t r = 0; r < rows; ++r) {
      load_rows(job.q, job.q_rotation, run.b, head(r), query(r), query(r) + 1, job.q.features,
                q.data() + r * job.q.features);
    }
    const auto factor = static_cast<float>(job.scale * kLog2E);
    if (native.take_queries(q, factor, widens_keys)) return;
    for (float& x : q) x *= factor;
  }
};

// Takes the memory that a run takes, for a plan, which counts it.
inline void take_run_memory(const AttentionJob& job, const ScoreBias& bias, const SplitRun& run) {
  const SplitPass pass{job, bias, run};
  kernels::take_and_give(rotation_scratch(job));
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
