// What a decoding step has beside f32 products: those of 16-bit numbers, if the processor has instructions for them; for code
// that is compiled once per SIMD target.

#if defined(POSENC_DECODE_NATIVE_16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_DECODE_NATIVE_16_INL_H
#undef POSENC_DECODE_NATIVE_16_INL_H
#else
#define POSENC_DECODE_NATIVE_16_INL_H
#endif

#include <algorithm>
#include <bit>

#include "attention/cpu/decode/rows-inl.h"
#include "attention/cpu/decode/split.h"
#include "kernels/cpu/native_16-inl.h"
#if POSENC_NATIVE_16
#include "attention/cpu/decode/add_16-inl.h"
#elif HWY_TARGET == HWY_AVX3 && defined(__linux__) && !defined(__clang__)
#include "attention/cpu/decode/amx-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

#if POSENC_NATIVE_16

struct NativeRoom {
  NativeRoom(const AttentionJob&, DataType, std::int64_t, bool) {}
};
struct NativeProducts {
  struct Unit {};
  DataType key_type;
  std::int64_t rows, features;
  // 16-bit queries in one plane or, for f16, two; and temporary room for four of them
  AlignedVector<std::uint16_t> narrow_q, plain_q;
  Queries16 q = {};  // empty: keys are multiplied in f32
  // the sum of two bf16 is precise enough for weights if the result is bf16, not f32; that of two f16 is for any
  // result
  bool adds_bf16, adds_f16;
  AlignedVector<std::uint16_t> weights;  // of four rows

  NativeProducts(const AttentionJob& job, const RowReader& k, const RowReader& v, std::int64_t some_rows, NativeRoom&)
      : key_type(k.type),
        rows(some_rows),
        features(job.q.features),
        narrow_q(static_cast<std::size_t>(key_type == DataType::kF32   ? 0
                                          : key_type == DataType::kF16 ? 2 * rows * features
                                                                       : rows * features)),
        plain_q(static_cast<std::size_t>(key_type == DataType::kBF16 ? 4 * features : 0)),
        adds_bf16(v.type == DataType::kBF16 && job.out.type == DataType::kBF16 && job.v.features % 8 == 0 &&
                  has_bf16_dots()),
        adds_f16(v.type == DataType::kF16 && job.v.features % 64 == 0 && has_f16_products()),
        weights(static_cast<std::size_t>(adds_bf16 ? 8 * kDecodeStep : 0)) {}

  static bool takes(const AttentionJob&, const RowReader&, const RowReader&, std::int64_t) { return false; }
  // Queries of the keys' type that were not rotated are multiplied with the keys directly, and the factor is applied
  // later. Others are used in two planes with f16 keys. With bf16 keys, which are then widened, one to three of them
  // are rearranged; four or more are processed four at a time (score_rows). Returns whether the factor is left out of
  // `wide`, [rows, features].
  bool take_queries(AlignedVector<float>& wide, float factor, bool widens_keys) {
    if (features % 8 != 0) return false;
    if (key_type == DataType::kF16 && has_f16_products() && !widens_keys) take_f16(wide, factor);
    if (key_type == DataType::kBF16 && has_bf16_dots()) take_bf16(wide, factor);
    return q.narrow != nullptr;
  }
  void take_f16(const AlignedVector<float>& wide, float factor) {
    std::uint16_t *const upper = narrow_q.data(), *const lower = upper + wide.size();
    const float scale = split_f16(wide.data(), wide.size(), upper, lower);
    if (scale == 0.0f) return;
    const bool is_one_plane =
        std::all_of(lower, lower + wide.size(), [](std::uint16_t x) { return (x & 0x7FFF) == 0; });
    q = {.narrow = upper, .lower = is_one_plane ? nullptr : lower, .is_f16 = true, .factor = factor * scale};
  }
  void take_bf16(AlignedVector<float>& wide, float factor) {
    bool all_narrow = true;
    for (std::size_t i = 0; i < wide.size(); ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(wide[i]);
      narrow_q[i] = static_cast<std::uint16_t>(bits >> 16);
      all_narrow = all_narrow && (bits & 0xFFFFU) == 0;
    }
    if (all_narrow) {
      for (std::int64_t r = 0; r + 4 <= rows; r += 4) {
        std::uint16_t *const four = narrow_q.data() + r * features, *const plain = plain_q.data();
        std::copy(four, four + 4 * features, plain);
        pair_rows(plain, plain + features, features, four);
        pair_rows(plain + 2 * features, plain + 3 * features, features, four + 2 * features);
      }
      q = {.narrow = narrow_q.data(), .factor = factor};
    } else if (rows < kFewRows) {
      for (std::size_t i = 0; i < wide.size(); i += 8) {
        const float* const x = wide.data() + i;
        const float apart[] = {x[0], x[2], x[4], x[6], x[1], x[3], x[5], x[7]};
        std::copy(apart, apart + 8, wide.begin() + static_cast<std::ptrdiff_t>(i));
      }
      q = {.wide = wide.data()};
    }
  }

  static void begin_block(RowReader&, RowReader&, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {}
  static void fetch_beside_weights() {}
  // Scores of a step; returns whether it can.
  bool score(const Step& step, const StepRows& keys) const {
    if (q.narrow == nullptr && q.wide == nullptr) return false;
    score_rows_16(q, rows, keys, step.count(), features, step.scores(0), step.block.stride);
    return true;
  }

  // Adds values of a step in which every query attends to all keys, for some rows; returns how many.
  std::int64_t add(const Step& step, const StepRows& values, std::int64_t value_features) {
    std::int64_t done = 0;
    const float* const rescale = step.block.rescale;
    for (; adds_bf16 && done + 4 <= rows; done += 4) {
      pack_weights_4(step.scores(done), step.block.stride, step.count(), weights.data());
      add_rows_16_4(weights.data(), values, step.count(), value_features, rescale + done, done == 0,
                    step.block.sums + done * value_features);
    }
    const bool is_one_by_one = adds_bf16 || (adds_f16 && rows < kFewRows);
    for (; is_one_by_one && done < rows; ++done) {
      float *const row = step.scores(done), *const sums = step.block.sums + done * value_features;
      if (adds_bf16) {
        for_each_64_rows(values, step.count(), rescale[done],
                         [&](const auto& some, std::int64_t at, std::int64_t few, float by)
                             HWY_ATTR { add_rows_16(row + at, some, few, value_features, by, sums); });
      } else {
        for_each_64_rows(values, step.count(), rescale[done],
                         [&](const auto& some, std::int64_t at, std::int64_t few, float by)
                             HWY_ATTR { add_rows_f16(row + at, some, few, value_features, by, sums); });
      }
    }
    return done;
  }
};

#elif !(HWY_TARGET == HWY_AVX3 && defined(__linux__) && !defined(__clang__))

struct NativeRoom {
  NativeRoom(const AttentionJob&, DataType, std::int64_t, bool) {}
};
struct NativeProducts {
  struct Unit {};
  NativeProducts(const AttentionJob&, const RowReader&, const RowReader&, std::int64_t, NativeRoom&) {}
  static bool takes(const AttentionJob&, const RowReader&, const RowReader&, std::int64_t) { return false; }
  static bool take_queries(const AlignedVector<float>&, float, bool) { return false; }
  static void begin_block(RowReader&, RowReader&, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {}
  static void fetch_beside_weights() {}
  static bool score(const Step&, const StepRows&) { return false; }
  static std::int64_t add(const Step&, const StepRows&, std::int64_t) { return 0; }
};

#endif

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
