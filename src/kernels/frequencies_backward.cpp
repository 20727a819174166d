// y = R(φ) x rotates a pair by φ = position · frequency, so ∂y/∂φ is y rotated by a quarter turn, and ∂L/∂φ = ⟨dy, J
// y⟩ = ⟨Rᵀ dy, J x⟩ = ⟨dx, J x⟩ = a · d_b − b · d_a: rotations of a plane commute, and a magnitude cancels.

#include <fmt/format.h>

#include <vector>

#include "kernels/checks.h"
#include "kernels/rotation_element.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using namespace kernels;

constexpr std::string_view kFrequenciesVerb = "frequencies_backward";

// [pairs] or [heads, pairs, axes], as the form stores its frequencies.
Extents frequency_shape(const Rotation& form) {
  const auto* const own = std::get_if<HeadWaves>(&form.source);
  if (own == nullptr) return {pairs_of(form)};
  return {own->heads, pairs_of(form), form.position_axes};
}

void check_trained(const Rotation& form) {
  const bool is_exact = is_plain(form) && !has_table(form) && !has_growth(form) && !has_float32_angles(form);
  if (is_exact || std::holds_alternative<HeadWaves>(form.source)) return;
  raise(fmt::format("{}: a table, a mixture, growth and float32 angles have no such gradient", kFrequenciesVerb));
}

double feature_of(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t f) {
  return with_type(x.type, [&](auto kind) {
    return numerics::widen(x.template row<decltype(kind)>(b, h, t)[f * x.feature_stride]);
  });
}

void add_frequency_sums(const TensorView& to, const std::vector<double>& sums) {
  with_type(to.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::int64_t rest = static_cast<std::int64_t>(i), offset = 0;
      for (int axis = to.shape.rank - 1; axis >= 0; --axis) {
        offset += rest % to.shape[axis] * to.strides[axis];
        rest /= to.shape[axis];
      }
      T& out = static_cast<T*>(to.data)[offset];
      out = numerics::narrow<T>(numerics::widen(out) + sums[i]);
    }
  });
}

}  // namespace

void frequencies_backward(TensorView d_frequencies, const RotatedGradient& gradient, const Positions& positions,
                          const Rotation& form) {
  constexpr std::string_view verb = kFrequenciesVerb;
  check_trained(form);
  for (const ConstTensorView& view : {ConstTensorView(d_frequencies), gradient.x, gradient.d_x}) {
    if (view.device != Device::kHost) raise(fmt::format("{}: tensors must be on the host", verb));
  }
  check_tensor(verb, "d_frequencies", d_frequencies, 1, 3, "1 to 3 axes, heads, pairs and position axes");
  check_writable(verb, "d_frequencies", d_frequencies);
  const Extents wanted = frequency_shape(form);
  if (d_frequencies.shape != wanted) {
    raise(fmt::format("{}: d_frequencies must be {} but is {}", verb, to_string(wanted),
                      to_string(d_frequencies.shape)));
  }
  const HeadTensor<const void> x = heads_of(verb, "x", gradient.x), d_x = heads_of(verb, "d_x", gradient.d_x);
  if (gradient.x.shape != gradient.d_x.shape) {
    raise(fmt::format("{}: x has shape {} but d_x has {}", verb, to_string(gradient.x.shape),
                      to_string(gradient.d_x.shape)));
  }
  const TokenPositions at = rotated_positions_of(verb, positions, form, x);
  const std::int64_t pairs = pairs_of(form), in_block = pairs / form.blocks,
                     first = form.first_dim < 0 ? x.features + form.first_dim : form.first_dim;
  const PairPlaces places = placement_of(form.layout, in_block).read;
  const bool sums_axes = std::holds_alternative<HeadWaves>(form.source);
  const std::int64_t axes = sums_axes ? form.position_axes : 1;
  std::vector<double> sums(form.frequencies.size());
  for (std::int64_t row = 0; row < x.batch * x.sequence; ++row) {
    const std::int64_t b = row / x.sequence, t = row % x.sequence;
    for (std::int64_t h = 0; h < x.heads; ++h) {
      for (std::int64_t i = 0; i < pairs; ++i) {
        const std::int64_t a = first + i / in_block * 2 * in_block + i % in_block * places.step;
        const double by_angle = feature_of(x, b, h, t, a) * feature_of(d_x, b, h, t, a + places.apart) -
                                feature_of(x, b, h, t, a + places.apart) * feature_of(d_x, b, h, t, a);
        const std::int64_t wave = (heads_of(form) > 1 ? h * pairs : 0) + i;
        for (std::int64_t axis = 0; axis < axes; ++axis) {
          const int driver =
              sums_axes ? static_cast<int>(axis) : static_cast<int>(axis_of(form, static_cast<std::size_t>(i)));
          sums[wave * axes + axis] += form.sign * static_cast<double>(at.at(b, t, driver)) * by_angle;
        }
      }
    }
  }
  add_frequency_sums(d_frequencies, sums);
}

}  // namespace posenc
