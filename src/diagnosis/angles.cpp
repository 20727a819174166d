#include "diagnosis/angles.h"

#include <algorithm>
#include <cmath>

#include "posenc/apply.h"
#include "posenc/half.h"

namespace posenc::diagnosis {
namespace {

enum class Narrow : std::uint8_t { kNot, kBf16, kF16 };

// Which 16-bit type a step is rounded to.
struct Steps16 {
  Narrow frequency = Narrow::kNot, position = Narrow::kNot, product = Narrow::kNot;
};
Steps16 steps16(AngleKind kind) {
  switch (kind) {
    case AngleKind::kBf16Frequencies:
      return {.frequency = Narrow::kBf16};
    case AngleKind::kBf16Positions:
      return {.position = Narrow::kBf16};
    case AngleKind::kBf16Angles:
      return {Narrow::kBf16, Narrow::kBf16, Narrow::kBf16};
    case AngleKind::kF16Frequencies:
      return {.frequency = Narrow::kF16};
    case AngleKind::kF16Angles:
      return {Narrow::kF16, Narrow::kF16, Narrow::kF16};
    default:
      return {};
  }
}

double narrowed(double value, Narrow type) {
  constexpr double kLargestHalf = 65504;
  switch (type) {
    case Narrow::kBf16:
      return to_double(to_bfloat16(value));
    case Narrow::kF16:  // infinity has no sine
      return to_double(to_half(std::clamp(value, -kLargestHalf, kLargestHalf)));
    default:
      return value;
  }
}

}  // namespace

Numerics numerics_of(AngleKind kind) noexcept {
  if (kind == AngleKind::kGgmlF32) return Numerics::kGgmlF32;
  const bool is_exact = kind == AngleKind::kExact || kind == AngleKind::kBf16Positions;
  return is_exact ? Numerics::kExact : Numerics::kHfF32;
}

void round_frequencies(AngleKind kind, Rotation& form) {
  const Narrow type = steps16(kind).frequency;
  for (float& factor : std::get<PairWaves>(form.source).float32_angles.factors) {
    factor = static_cast<float>(narrowed(static_cast<double>(factor), type));
  }
}

std::int64_t rounded_position(AngleKind kind, std::int64_t position) {
  const Narrow type = steps16(kind).position;
  return type == Narrow::kNot ? position : std::llround(narrowed(static_cast<double>(position), type));
}

void tabulate_as(AngleKind kind, const Rotation& form, std::span<const std::int64_t> ids, std::span<double> cosines,
                 std::span<double> sines) {
  const std::int64_t pairs = pairs_of(form), tokens = std::ssize(cosines) / pairs;
  const Narrow product = steps16(kind).product;
  if (product == Narrow::kNot) {
    return tabulate(view(cosines.data(), {tokens, pairs}), view(sines.data(), {tokens, pairs}),
                    {.ids = ids, .axes = form.position_axes}, form);
  }
  for (std::size_t at = 0; at < cosines.size(); ++at) {
    const std::size_t pair = at % pairs, token = at / pairs;
    const std::size_t axis = axis_of(form, pair);
    const auto position = static_cast<double>(ids[axis * tokens + token]);
    const double angle =
        narrowed(position * static_cast<double>(pair_waves_of(form).float32_angles.factors[pair]), product);
    cosines[at] = form.magnitude * std::cos(angle);
    sines[at] = form.magnitude * form.sign * std::sin(angle);
  }
}

}  // namespace posenc::diagnosis
