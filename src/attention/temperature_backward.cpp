// q' = f q, so dL/df = Σ dq'·q = Σ dq·q / f, and the derivative of f by the scale is the logarithm that it
// multiplies.

#include <fmt/format.h>

#include "attention/plan/arguments.h"
#include "kernels/element.h"
#include "posenc/attention.h"
#include "posenc/error.h"

namespace posenc {

void temperature_backward(TensorView d_scales, const QueryGradient& query, const Positions& positions,
                          const Temperature& temperature) {
  constexpr std::string_view caller = "temperature_backward";
  check_temperature(caller, temperature);
  for (const ConstTensorView& view : {ConstTensorView(d_scales), query.q, query.d_q}) {
    if (view.device != Device::kHost) raise(fmt::format("{}: tensors must be on the host", caller));
  }
  const auto q = attend::tensor_of<const void>(caller, "q", query.q);
  const auto d_q = attend::tensor_of<const void>(caller, "d_q", query.d_q);
  if (query.q.shape != query.d_q.shape) {
    raise(fmt::format("{}: q has shape {} but d_q has {}", caller, to_string(query.q.shape),
                      to_string(query.d_q.shape)));
  }
  const auto scales = static_cast<std::int64_t>(temperature.head_scales.size());
  if (scales != 0 && scales != q.heads) {
    raise(fmt::format("{}: the temperature has {} scales but q has {} heads", caller, scales, q.heads));
  }
  const Extents wanted{std::max<std::int64_t>(scales, 1)};
  check_tensor(caller, "d_scales", d_scales, 1, 1, "1 axis, scales");
  kernels::check_writable(caller, "d_scales", d_scales);
  if (d_scales.shape != wanted) {
    raise(fmt::format("{}: d_scales must be {} but is {}", caller, to_string(wanted), to_string(d_scales.shape)));
  }
  if (count_of(query.q.shape) == 0) return;
  const TokenPositions at = kernels::positions_of(caller, positions, 1, {q.batch, q.sequence}, {});
  const auto element = [](const auto& x, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t f) {
    return kernels::with_type(x.type, [&](auto kind) {
      return numerics::widen(x.template row<decltype(kind)>(b, h, i)[f * x.feature_stride]);
    });
  };
  std::vector<double> sums(wanted[0]);
  for (std::int64_t row = 0; row < q.batch * q.heads * q.sequence; ++row) {
    const std::int64_t b = row / q.sequence / q.heads, h = row / q.sequence % q.heads, i = row % q.sequence;
    const double share = logarithm_at(temperature, at.at(b, i));
    if (share == 0) continue;
    const double factor = factor_at(temperature, at.at(b, i), h);
    if (factor == 0) raise(fmt::format("{}: the factor of position {} is 0", caller, at.at(b, i)));
    double product = 0;
    for (std::int64_t f = 0; f < q.features; ++f) product += element(q, b, h, i, f) * element(d_q, b, h, i, f);
    sums[scales == 0 ? 0 : h] += share * product / factor;
  }
  kernels::with_type(d_scales.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      T& out = static_cast<T*>(d_scales.data)[static_cast<std::int64_t>(i) * d_scales.strides[0]];
      out = numerics::narrow<T>(numerics::widen(out) + sums[i]);
    }
  });
}

}  // namespace posenc
