// Packs the operands of BFMMLA.

#ifndef POSENC_BFMMLA_PACK_INL_H  // compiled for a single SIMD target
#define POSENC_BFMMLA_PACK_INL_H

#include <algorithm>
#include <type_traits>

#include "attention/cpu/bf16-inl.h"
#include "attention/cpu/products/planes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

HWY_INLINE float32x4_t lower_of(uint16x8_t bits) {
  return vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(bits), 16));
}
HWY_INLINE float32x4_t upper_of(uint16x8_t bits) { return vreinterpretq_f32_u32(vshll_high_n_u16(bits, 16)); }
// The remainder of a number after subtracting its bf16; 0 if it is not finite.
HWY_INLINE float32x4_t rest_of(float32x4_t x, float32x4_t high) {
  const uint32x4_t is_finite = vcaltq_f32(high, vdupq_n_f32(-kNone));
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(vsubq_f32(x, high)), is_finite));
}
// Eight f32, in one plane or two.
HWY_INLINE void split_eight(const float* x, uint16x8_t& high, uint16x8_t& low) {
  const float32x4_t a = vld1q_f32(x), b = vld1q_f32(x + 4);
  high = to_bf16(a, b);
  low = to_bf16(rest_of(a, lower_of(high)), rest_of(b, upper_of(high)));
}

constexpr std::int64_t kColumns = 12;  // of a panel: three vectors of four

// The operands of planes-inl.h as BFMMLA takes them.
struct BfmmlaUnit {
  static constexpr std::int64_t kRows = 8, kDepth = 4, kPair = 4;
  static constexpr int kVectors = 3;
  static constexpr std::int64_t kValueBlocks = 1, kMostKeptBytes = 2 << 20;
  static std::int64_t keys_of_block(std::int64_t /*features*/) { return kKeyBlock; }

  // Rows of f32 as columns or rows of an operand whose steps are `step` elements apart: out[k / 4 · step + row · 4 + k
  // mod 4].
  static HWY_INLINE void place_rows(const float* rows, std::int64_t stride, std::int64_t count, std::int64_t features,
                                    std::int64_t planes, std::int64_t plane, std::int64_t step, std::uint16_t* out) {
    for (std::int64_t r = 0; r < count; ++r, rows += stride, out += kPair) {
      for (std::int64_t f = 0; f < features; f += 8) {
        HWY_ALIGN float eight[8] = {};
        const std::int64_t rest = std::min<std::int64_t>(features - f, 8);
        if (rest < 8) std::copy(rows + f, rows + f + rest, eight);
        uint16x8_t high, low;
        split_eight(rest < 8 ? eight : rows + f, high, low);
        std::uint16_t* const to = out + f / kPair * step;
        const auto put = [&](uint16x8_t bits, std::uint16_t* place) HWY_ATTR {
          vst1_u16(place, vget_low_u16(bits));
          if (rest > 4) vst1_u16(place + step, vget_high_u16(bits));
        };
        put(high, to);
        if (planes > 1) put(low, to + plane);
      }
    }
  }
  // Packs queries, [count, features] f32, as the columns of a panel; missing columns are 0.
  static void pack_columns(const float* rows, std::int64_t count, std::int64_t features, std::int64_t depth,
                           std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
    for (std::int64_t p = 0; p < planes && count < kColumns; ++p) {
      std::fill_n(out + p * plane, depth * kColumns, std::uint16_t{0});
    }
    place_rows(rows, features, count, features, planes, plane, kColumns * kPair, out);
  }
  // The same for bf16 queries that are contiguous in memory, features a multiple of 8.
  static void copy_columns(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
                           std::int64_t end, std::uint16_t* out) {
    if (end - begin < kColumns) std::fill_n(out, x.features * kColumns, std::uint16_t{0});
    for (std::int64_t t = begin; t < end; ++t, out += kPair) {
      const auto* const row = x.row<std::uint16_t>(b, h, t);
      for (std::int64_t f = 0; f < x.features; f += 4) vst1_u16(out + f * kColumns, vld1_u16(row + f));
    }
  }

  // Two rows of a group, eight features of each, in two steps of 4.
  static HWY_INLINE void place_two(uint16x8_t first, uint16x8_t second, std::uint16_t* to) {
    const uint64x2_t a = vreinterpretq_u64_u16(first), c = vreinterpretq_u64_u16(second);
    vst1q_u16(to, vreinterpretq_u16_u64(vzip1q_u64(a, c)));
    vst1q_u16(to + kRows * kPair, vreinterpretq_u16_u64(vzip2q_u64(a, c)));
  }
  // Packs keys, [count, features] f32, in groups of 8 rows; missing rows are 0.
  static void pack_groups(const float* rows, std::int64_t count, std::int64_t features, std::int64_t depth,
                          std::int64_t planes, std::int64_t plane, std::uint16_t* out) {
    for (std::int64_t t = 0; t < count; t += kRows, out += kRows * depth, rows += kRows * features) {
      const std::int64_t some = std::min(kRows, count - t);
      for (std::int64_t p = 0; p < planes && some < kRows; ++p) {
        std::fill_n(out + p * plane, kRows * depth, std::uint16_t{0});
      }
      if (some < kRows || features % 8 != 0) {
        place_rows(rows, features, some, features, planes, plane, kRows * kPair, out);
        continue;
      }
      for (std::int64_t r = 0; r < kRows; r += 2) {
        const float *const first = rows + r * features, *const second = first + features;
        std::uint16_t* to = out + r * kPair;
        for (std::int64_t f = 0; f < features; f += 8, to += 2 * kRows * kPair) {
          uint16x8_t high_a, low_a, high_b, low_b;
          split_eight(first + f, high_a, low_a);
          split_eight(second + f, high_b, low_b);
          place_two(high_a, high_b, to);
          if (planes > 1) place_two(low_a, low_b, to + plane);
        }
      }
    }
  }
  // The same for bf16 keys that are contiguous in memory, features a multiple of 8: a copy.
  static void copy_groups(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t begin,
                          std::int64_t end, std::uint16_t* out) {
    const std::int64_t features = x.features;
    for (std::int64_t t = begin; t < end; t += kRows, out += kRows * features) {
      for (std::int64_t r = 0; r < kRows; r += 2) {
        const bool has_first = t + r < end, has_second = t + r + 1 < end;
        const auto* const first = has_first ? x.row<std::uint16_t>(b, h, t + r) : nullptr;
        const auto* const second = has_second ? x.row<std::uint16_t>(b, h, t + r + 1) : nullptr;
        std::uint16_t* to = out + r * kPair;
        for (std::int64_t f = 0; f < features; f += 8, to += 2 * kRows * kPair) {
          const uint16x8_t zero = vdupq_n_u16(0);
          place_two(has_first ? vld1q_u16(first + f) : zero, has_second ? vld1q_u16(second + f) : zero, to);
        }
      }
    }
  }

  // Transposes four rows of eight.
  static HWY_INLINE void transpose_4x8(uint16x8_t a, uint16x8_t b, uint16x8_t c, uint16x8_t d, std::uint16_t* out) {
    const auto put = [](uint16x8_t first, uint16x8_t second, std::uint16_t* to) HWY_ATTR {
      const uint32x4_t x = vreinterpretq_u32_u16(first), y = vreinterpretq_u32_u16(second);
      vst1q_u16(to, vreinterpretq_u16_u32(vzip1q_u32(x, y)));
      vst1q_u16(to + 8, vreinterpretq_u16_u32(vzip2q_u32(x, y)));
    };
    put(vzip1q_u16(a, b), vzip1q_u16(c, d), out);
    put(vzip2q_u16(a, b), vzip2q_u16(c, d), out + 16);
  }
  // Packs values as groups of 8 features; the keys of a block are the depth of the product. Keys past the last give 0.
  // `row`(j): where the values of key j begin, [features] f32 or bf16; null past the last.
  template <class Row> static HWY_INLINE void pack_values(const Row& row, std::int64_t keys, std::int64_t features,
                                                          std::int64_t planes, std::int64_t plane,
                                                          std::uint16_t* out) {
    for (std::int64_t j = 0; j < keys; j += 4) {
      const auto *r0 = row(j), *r1 = row(j + 1), *r2 = row(j + 2), *r3 = row(j + 3);
      using T = std::remove_cvref_t<decltype(*r0)>;
      std::uint16_t* to = out + j * kRows;
      for (std::int64_t f = 0; f < features; f += 8, to += kKeyBlock * kRows) {
        uint16x8_t high[4], low[4];
        const auto read = [&](const T* from, int i) HWY_ATTR {
          high[i] = low[i] = vdupq_n_u16(0);
          if (from == nullptr) return;
          if constexpr (std::is_same_v<T, float>) {
            split_eight(from + f, high[i], low[i]);
          } else {
            high[i] = vld1q_u16(from + f);
          }
        };
        read(r0, 0), read(r1, 1), read(r2, 2), read(r3, 3);
        transpose_4x8(high[0], high[1], high[2], high[3], to);
        if (planes > 1) transpose_4x8(low[0], low[1], low[2], low[3], to + plane);
      }
    }
  }

  // Whether packed values are finite, with zeros past the last.
  static bool are_values_finite(const std::uint16_t* values, std::int64_t keys, std::int64_t features) {
    for (std::int64_t f = 0; f < features; f += kRows) {
      if (!all_finite(values + f * kKeyBlock, keys * kRows)) return false;
    }
    return true;
  }
};

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_BFMMLA_PACK_INL_H
