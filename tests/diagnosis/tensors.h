#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "posenc/analysis.h"
#include "posenc/half.h"
#include "posenc/posenc.h"

// Tensors before and after a known convention.
namespace posenc::tests {

struct Made {
  std::vector<float> before, after;
  Extents shape;
  ConstTensorView before_view() const { return view(before.data(), shape); }
  ConstTensorView after_view() const { return view(after.data(), shape); }
};

inline std::vector<float> random_values(std::size_t count, unsigned seed = 7) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

struct How {
  std::int64_t heads = 1, sequence = 16, features = 64, first = 0;
  Numerics numerics = Numerics::kExact;
  double magnitude = 0;  // 0: the scheme's own
  unsigned seed = 7;
};

inline Made made(const Rope& rope, const How& how = {}) {
  Made result;
  result.shape = {how.heads, how.sequence, how.features};
  result.before = random_values(static_cast<std::size_t>(count_of(result.shape)), how.seed);
  result.after = result.before;
  Rotation form = prepare(rope, {.length = how.first + how.sequence, .numerics = how.numerics});
  if (how.magnitude > 0) form.magnitude = how.magnitude;
  rotate(view(result.after.data(), result.shape), {.first = how.first}, form);
  return result;
}

inline std::vector<BFloat16> as_bf16(const std::vector<float>& values) {
  std::vector<BFloat16> out;
  for (const float value : values) out.push_back(to_bfloat16(static_cast<double>(value)));
  return out;
}

}  // namespace posenc::tests
