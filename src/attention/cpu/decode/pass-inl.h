// What the pass over a run of keys needs, for code that is compiled once per SIMD target.

#if defined(POSENC_DECODE_PASS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_PASS_INL_H
#undef POSENC_DECODE_PASS_INL_H
#else
#define POSENC_DECODE_PASS_INL_H
#endif

#include <algorithm>
#include <optional>
#include <variant>

#include "attention/cpu/decode/dot-inl.h"
#include "attention/cpu/decode/native_16-inl.h"
#include "attention/cpu/score_bias.h"
#include "forms/checks.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

inline const RowRotation kNoRotation = {};  // values are never rotated

// What the heads of a run share: their rows are read in turns.
struct PassMemory {
  std::int64_t rows;
  RowReader k, v;
  bool by_unit;  // whether a matrix unit multiplies
  NativeRoom room;
  // 16-bit values that are multiplied in f32 are widened once if eight or more rows use them; if eight rows share a load,
  // 32 or more. Those of e4m3, which take longer to widen, if four do. Those of q8_0 are widened in registers.
  bool widens_values = !by_unit && v.in_place && v.type != DataType::kF32 && v.type != DataType::kQ8_0 &&
                       rows >= (v.type == DataType::kE4M3             ? 1
                                : transposes_keys(rows, v.x.features) ? 8
                                                                      : 2) *
                                   kFewRows;
  AlignedVector<float> wide_values =
      AlignedVector<float>(widens_values ? static_cast<std::size_t>(kDecodeStep * v.x.features) : 0);
  // So are keys, from 32 rows on; with fewer, it costs more than it saves.
  bool widens_keys = !by_unit && k.in_place && k.type != DataType::kQ8_0 &&
                     (k.type == DataType::kE4M3
                          ? rows >= kFewRows
                          : rows >= 8 * kFewRows && !transposes_keys(rows, k.x.features) && k.type != DataType::kF32);
  AlignedVector<float> wide_keys =
      AlignedVector<float>(widens_keys ? static_cast<std::size_t>(kDecodeStep * k.x.features) : 0);

  // With masks, which may hide values that are not finite (add_past_masks): sums before a step, and after.
  AlignedVector<float> sums_before;

  PassMemory(const AttentionJob& job, std::int64_t heads, std::int64_t last_key)
      : rows(job.group * job.q.sequence),
        k{.x = job.k, .rotation = job.k_rotation, .heads = heads, .last_key = last_key},
        v{.x = job.v, .rotation = kNoRotation, .heads = heads, .last_key = last_key},
        by_unit(NativeProducts::takes(job, k, v, rows)),
        room(job, k.type, rows, by_unit),
        sums_before(static_cast<std::size_t>(job.has_masks() ? 2 * rows * job.v.features : 0)) {
    if (!by_unit) return;
    k.set_later(kUnitBlock);
    v.set_later(kUnitBlock);
  }
};

// The keys whose weights are computed together. The online softmax of a step of keys takes as long as that of four, most of it
// waiting for sums across lanes; but the scores of many rows leave the L1 cache.
inline std::int64_t keys_of_block(std::int64_t rows, bool by_unit) {
  if (by_unit) return kUnitBlock;
  constexpr std::int64_t kScores = 4096;
  if (rows < kFewRows) return kSplit;
  return std::clamp(kScores / rows / kDecodeStep, std::int64_t{1}, std::int64_t{4}) * kDecodeStep;
}

// One run of keys and all queries that share its key head.
struct SplitPass {
  const AttentionJob& job;
  const ScoreBias& bias;
  PassMemory& memory;
  SplitRun run;
  std::int64_t rows = memory.rows;
  std::int64_t block = keys_of_block(rows, memory.by_unit);
  std::int64_t blocks = rows < kFewRows ? run.splits() : 1;  // whose scores are kept at the same time
  bool adjusts = job.softcap > 0 || !std::holds_alternative<terms::NoTiles>(bias.tiles) || job.has_masks();  // scores
  AlignedVector<float> q = AlignedVector<float>(static_cast<std::size_t>(rows * job.q.features));
  NativeProducts native{job, memory.k, memory.v, rows, memory.room};
  std::int64_t stride = block + kMostLanes;  // of a row of scores, padded because vectors may pass its end
  AlignedVector<float> scores = AlignedVector<float>(static_cast<std::size_t>(blocks * rows * stride));
  AlignedVector<float> rescale = AlignedVector<float>(static_cast<std::size_t>(blocks * rows));

  SplitPass(const AttentionJob& a_job, const ScoreBias& a_bias, PassMemory& a_memory, const SplitRun& a_run)
      : job(a_job), bias(a_bias), memory(a_memory), run(a_run) {}

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
  // The queries, times the factor of the scores unless that is applied later.
  void load_queries() {
    for (std::int64_t r = 0; r < rows; ++r) {
      load_rows(job.q, job.q_rotation, run.b, head(r), query(r), query(r) + 1, job.q.features,
                q.data() + r * job.q.features);
    }
    const auto factor = static_cast<float>(job.scale * kLog2E);
    if (native.take_queries(q, factor, memory.widens_keys)) return;
    for (float& x : q) x *= factor;
  }
};

// The passes of all heads of a run. Given back in the opposite order, as an arena wants its memory.
struct HeadPasses {
  PassMemory memory;
  AlignedVector<SplitPass> all;
  // The most keys of a step: of one head, a single row reads each row only once.
  std::int64_t step;
  std::optional<NativeProducts::Unit> unit;

  HeadPasses(const AttentionJob& job, const ScoreBias& bias, const SplitRun& run, std::int64_t last_key)
      : memory(job, run.heads, last_key) {
    const bool is_long = run.heads == 1 && memory.rows == 1 && memory.k.in_place && memory.v.in_place;
    step = is_long ? kLongStep : kDecodeStep;
    if (memory.by_unit) unit.emplace();
    all.reserve(static_cast<std::size_t>(run.heads));
    for (std::int64_t head = 0; head < run.heads; ++head) all.emplace_back(job, bias, memory, run.of_head(head));
  }
  ~HeadPasses() {
    while (!all.empty()) all.pop_back();
  }
  HeadPasses(const HeadPasses&) = delete;
  HeadPasses& operator=(const HeadPasses&) = delete;

  // Calls visit(pass, step) for the keys `first` to `last` of a split, head by head at each step.
  template <class Visitor>
  HWY_INLINE void each_step(std::int64_t split, std::int64_t first, std::int64_t last, const Visitor& visit) {
    for (std::int64_t at = first; at < last; at += step) {
      for (SplitPass& pass : all) {
        const KeyBlock block = pass.block_of(split, first, last);
        visit(pass, Step{block, at, std::min(at + step, last)});
      }
    }
  }
};

// Takes the memory that a run takes, for a plan, which counts it.
inline void take_run_memory(const AttentionJob& job, const ScoreBias& bias, const SplitRun& run) {
  const HeadPasses passes(job, bias, run, run.end);
  kernels::take_and_give(rotation_scratch(job));
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
