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
#include "attention/cpu/decode/q8_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

HWY_INLINE bool are_finite(const float* HWY_RESTRICT x, std::int64_t count) {
  VF worst = hn::Zero(DF());
  float rest = 0;
  std::int64_t i = 0;
  for (; i + lanes() <= count; i += lanes()) {  // x − x is 0 or NaN
    const VF some = hn::LoadU(DF(), x + i);
    worst = hn::Add(worst, hn::Sub(some, some));
  }
  for (; i < count; ++i) rest += x[i] - x[i];
  return hn::AllTrue(DF(), hn::Eq(worst, hn::Zero(DF()))) && rest == 0.0f;
}

// The values of a step as row r attends to them: one that is hidden from it is read as one that is not, wherever that is in
// `offsets`. Returns false if all are hidden.
inline bool replace_hidden(const SplitPass& pass, std::int64_t r, const StepRows& values, std::int64_t first,
                           std::int64_t count, std::int64_t* HWY_RESTRICT offsets) {
  std::int64_t visible = -1;
  const auto is_hidden = [&](std::int64_t j) {
    return pass.job.is_hidden(pass.run.b, pass.head(r), pass.query(r), first + j);
  };
  for (std::int64_t j = 0; j < count && visible < 0; ++j) visible = is_hidden(j) ? -1 : j;
  if (visible < 0) return false;
  for (std::int64_t j = 0; j < count; ++j) offsets[j] = values.offsets[is_hidden(j) ? visible : j];
  for (std::int64_t j = count; j % 8 != 0; ++j) offsets[j] = offsets[count - 1];
  return true;
}

// Adds the values of `count` keys from `first` on to the sums of rows `begin` to `end`, by add(values). Masks hide some of the
// keys: their weights are 0, which adds nothing unless a value is not finite; then a sum is not either. In that case, the
// sums of each row are those of the values that it attends to, in the same order: what is hidden changes no bit.
template <class Add> HWY_INLINE void add_past_masks(SplitPass& pass, std::int64_t begin, std::int64_t end,
                                                    const Step& step, const StepRows& values, std::int64_t first,
                                                    std::int64_t count, const Add& add) {
  if (!pass.job.has_masks()) return add(values);
  const std::int64_t features = pass.job.v.features, size = (end - begin) * features;
  float* const sums = step.block.sums + begin * features;
  float *const before = pass.memory.sums_before.data(), *const after = before + pass.rows * features;
  std::copy_n(sums, size, before);
  add(values);
  if (are_finite(sums, size)) return;
  std::int64_t offsets[kLongStep + 8];
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t row = (r - begin) * features;
    std::copy_n(before, size, sums);
    if (replace_hidden(pass, r, values, first, count, offsets)) {
      add(StepRows{values.first, offsets});
    } else {
      for (std::int64_t f = 0; f < features; ++f) sums[row + f] *= step.block.rescale[r];
    }
    std::copy_n(sums + row, features, after + row);
  }
  std::copy_n(after, size, sums);
}

// Adds the values of those keys of a step that one query attends to.
template <class V> HWY_INLINE void add_values(SplitPass& pass, std::int64_t r, const Step& step, const StepRows& rows,
                                              std::int64_t low, std::int64_t high) {
  const std::int64_t features = pass.job.v.features;
  const float* const weights = step.scores(r) + (low - step.begin);
  float* const sums = step.block.sums + r * features;
  const float rescale = step.block.rescale[r];
  add_past_masks(pass, r, r + 1, step, rows.from(low - step.begin), low, high - low,
                 [&](const StepRows& values) HWY_ATTR {
                   for_each_64_rows(values, high - low, rescale,
                                    [&](const auto& some, std::int64_t at, std::int64_t few, float by)
                                        HWY_ATTR { add_rows<V>(weights + at, some, few, features, by, sums); });
                 });
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
    if constexpr (sizeof(V) == 2 || sizeof(V) == 4) {  // those of e4m3 were widened for four rows and more
#if HWY_TARGET == HWY_AVX3
      for (; features % 32 == 0 && r + kManyRows <= pass.rows; r += kManyRows) {
        add_rows_8<V>(weights + r * pass.stride, pass.stride, from, count, features, rescale + r, r == 0,
                      step.block.sums + r * features);
      }
#endif
      for (; takes_fours && r + 4 <= pass.rows; r += 4) {
        add_rows_4<V>(weights + r * pass.stride, pass.stride, from, count, features, rescale + r, r == 0,
                      step.block.sums + r * features);
      }
    }
    if constexpr (std::is_same_v<V, Q8Block>) {
      if (pass.rows > 1) {
        with_places(from, count, [&](const auto& rows) HWY_ATTR {
          add_q8_rows(weights + r * pass.stride, pass.stride, pass.rows - r, rows, count, features, rescale + r,
                      r == 0, step.block.sums + r * features);
        });
        return;
      }
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
  bool all_see_all = true;  // but for what masks hide
  for (std::int64_t r = 0; r < pass.rows; ++r) {
    const KeyRange seen = pass.visible_keys(r, step.begin, step.end);
    if (seen.begin != step.begin || seen.end != step.end) all_see_all = false;
  }
  if (all_see_all) {
    add_past_masks(pass, 0, pass.rows, step, values, step.begin, step.count(), [&](const StepRows& some) HWY_ATTR {
      const std::int64_t done = pass.native.add(step, some, pass.job.v.features);
      if (done < pass.rows) add_in_f32(pass, step, some, done);
    });
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
