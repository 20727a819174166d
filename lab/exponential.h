#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace posenc::lab {

/// a·b + c, fused if the hardware does that as fast as a product.
inline float multiply_add(float a, float b, float c) {
#ifdef FP_FAST_FMAF
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

inline double exponential(double x) { return std::exp(x); }

// e^x within 2 ulp, without branches and calls, so that loops over it vectorise: e^x = 2^n · e^r with |r| ≤ ln 2 / 2.
// x is clamped to [−87, 88].
inline float exponential(float x) {
#ifdef __aarch64__
  x = __builtin_fminf(__builtin_fmaxf(x, -87.0f), 88.0f);  // one instruction each; comparisons would need twenty
#else
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
#endif
  constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: adding it rounds to an integer
  const float n = multiply_add(x, 1.44269504f, kRound) - kRound;
  const float r = multiply_add(n, 2.12194440e-4f, multiply_add(n, -0.693359375f, x));
  float p = 1.9875691500e-4f;
  p = multiply_add(p, r, 1.3981999507e-3f);
  p = multiply_add(p, r, 8.3334519073e-3f);
  p = multiply_add(p, r, 4.1665795894e-2f);
  p = multiply_add(p, r, 1.6666665459e-1f);
  p = multiply_add(p, r, 5.0000001201e-1f);
  p = multiply_add(p, r * r, r) + 1.0f;
  return p * std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
}

}  // namespace posenc::lab
