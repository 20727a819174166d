// Instructions for bf16 on arm64: BFMMLA multiplies two rows of four by two columns of four into four f32, BFCVTN rounds.

#ifndef POSENC_BF16_INL_H  // compiled for a single SIMD target
#define POSENC_BF16_INL_H

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

HWY_INLINE void multiply_2x4x2(float32x4_t& sum, uint16x8_t rows, uint16x8_t columns) {
  asm(".arch_extension bf16\n\tbfmmla %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(rows), "w"(columns));
}

HWY_INLINE uint16x8_t to_bf16(float32x4_t low, float32x4_t high) {
  uint16x8_t bits;
  asm(".arch_extension bf16\n\tbfcvtn %0.4h, %1.4s" : "=w"(bits) : "w"(low));
  asm(".arch_extension bf16\n\tbfcvtn2 %0.8h, %1.4s" : "+w"(bits) : "w"(high));
  return bits;
}
// Four weights of each of two keys, in two planes. The upper one is truncated, not rounded, which takes one
// instruction for eight.
HWY_INLINE uint16x8_t upper_plane(float32x4_t x, float32x4_t y) {
  return vuzp2q_u16(vreinterpretq_u16_f32(x), vreinterpretq_u16_f32(y));
}
HWY_INLINE uint16x8_t lower_plane(float32x4_t x, float32x4_t y) {
  const uint32x4_t top = vdupq_n_u32(0xFFFF0000U);
  const float32x4_t x_top = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), top));
  const float32x4_t y_top = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(y), top));
  return to_bf16(vsubq_f32(x, x_top), vsubq_f32(y, y_top));
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POSENC_BF16_INL_H
