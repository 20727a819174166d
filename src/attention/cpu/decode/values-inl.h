// Adds values times weights in a decoding step, for code that is compiled once per SIMD target.

#if defined(POSENC_DECODE_VALUES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_VALUES_INL_H
#undef POSENC_DECODE_VALUES_INL_H
#else
#define POSENC_DECODE_VALUES_INL_H
#endif

#include <algorithm>

#include "attention/cpu/decode/add-inl.h"
#include "attention/cpu/decode/pass-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

// Adds the values of one query's visible keys only: 0 times a NaN is not 0.
template <class V> HWY_INLINE void add_values(SplitPass& pass, std::int64_t r, const Step& step, const StepRows& rows,
                                              std::int64_t low, std::int64_t high) {
  const AttentionJob& job = pass.job;
  const std::int64_t features = job.v.features;
  const float* const weights = step.scores(r) + (low - step.begin);
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

// Adds the values of a step for the rows from `done` on, multiplied in f32. Not inline, because the code around the
// call needs all registers.
HWY_NOINLINE void add_in_f32(SplitPass& pass, const Step& step, const StepRows& values, std::int64_t done) {
  const std::int64_t features = pass.job.v.features, count = step.count();
  const bool takes_fours = features % (2 * lanes()) == 0;
  const auto add = [&](auto kind, const StepRows& from) HWY_ATTR {
    using V = decltype(kind);
    const float* const weights = step.scores(0);
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
  if (!pass.memory.widens_values) {
    with_rows(pass.memory.v, [&](auto kind) HWY_ATTR { add(kind, values); });
    return;
  }
  std::int64_t offsets[kDecodeStep + 8] = {};
  add(float{}, widened(pass.memory.v, values, count, pass.memory.wide_values.data(), offsets));
}

inline void add_step(SplitPass& pass, const Step& step) {
  const StepRows values = pass.memory.v.load(pass.run.b, pass.run.g, step.begin, step.end);
  float* const rescale = step.block.rescale;
  bool all_see_all = !pass.job.has_masks();
  for (std::int64_t r = 0; r < pass.rows; ++r) {
    const KeyRange seen = pass.visible_keys(r, step.begin, step.end);
    if (seen.begin != step.begin || seen.end != step.end) all_see_all = false;
  }
  if (all_see_all) {
    const std::int64_t done = pass.native.add(step, values, pass.job.v.features);
    if (done < pass.rows) add_in_f32(pass, step, values, done);
    std::fill(rescale, rescale + pass.rows, 1.0f);
    return;
  }
  with_rows(pass.memory.v, [&](auto kind) HWY_ATTR {
    using V = decltype(kind);
    for (std::int64_t r = 0; r < pass.rows; ++r) {
      const KeyRange seen = pass.visible_keys(r, step.begin, step.end);
      if (seen.begin >= seen.end) continue;
      add_values<V>(pass, r, step, values, seen.begin, seen.end);
      rescale[r] = 1;
    }
  });
}

inline void add_block(HeadPasses& passes, std::int64_t split, std::int64_t first, std::int64_t last) {
  passes.each_step(split, first, last, [&](SplitPass& pass, const Step& step) HWY_ATTR { add_step(pass, step); });
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
