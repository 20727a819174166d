#include "lab/position.h"

#include <algorithm>
#include <cmath>

#include "posenc/scheme.h"

namespace posenc::lab {
namespace {

template <class T> std::vector<double> values_of(const Layout& layout, std::string_view name, const T* parameters) {
  const Slice& slice = layout[name];
  const T* const first = parameters + slice.offset;
  return {first, first + slice.count};
}

template <class T> ConstTensorView table_view(const Layout& layout, const T* parameters) {
  const Slice& slice = layout["position.table"];
  return view(parameters + slice.offset, slice.shape);
}

template <class T> Kerple kerple_of(const Layout& layout, const T* parameters) {
  Kerple kerple;
  kerple.amplitudes = values_of(layout, "position.log_amplitudes", parameters);
  kerple.rates = values_of(layout, "position.log_rates", parameters);
  for (double& value : kerple.amplitudes) value = std::exp(value);
  for (double& value : kerple.rates) value = std::exp(value);
  return kerple;
}

// The paper's values: c = 0.1, and L = 512 of 2,048 tokens, scaled to our context. Both are fixed here, because the
// library has no gradient for them.
template <class T> Fire fire_of(const Shape& shape, const Layout& layout, const T* parameters) {
  Fire fire;
  fire.threshold = std::max(1.0, static_cast<double>(shape.context) / 4);
  fire.hidden_weights = values_of(layout, "position.hidden_weights", parameters);
  fire.hidden_biases = values_of(layout, "position.hidden_biases", parameters);
  fire.output_weights = values_of(layout, "position.output_weights", parameters);
  fire.output_biases = values_of(layout, "position.output_biases", parameters);
  return fire;
}

template <class T> Form form_of(const Shape& shape, const Layout& layout, const T* parameters, std::int64_t length) {
  PrepareOptions options;
  if (shape.scheme == "learned" || shape.scheme == "t5") options.weights = table_view(layout, parameters);
  if (shape.scheme == "rope" || shape.scheme == "kerple" || shape.scheme == "fire") options.length = length;
  return prepare(scheme_of(shape, layout, parameters), options);
}

template <class T>
void add_to(const Layout& layout, std::string_view name, std::span<const double> sums, T* gradients) {
  T* const to = gradients + layout[name].offset;
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] += static_cast<T>(sums[i]);
}

}  // namespace

template <class T> Scheme scheme_of(const Shape& shape, const Layout& layout, const T* parameters) {
  const std::int64_t heads = shape.heads, dims = shape.head_width();
  const std::string& scheme = shape.scheme;
  // Scaled to the initial size of embeddings: an amplitude of √2 · 0.02 has a root mean square of 0.02.
  if (scheme == "sinusoidal") return Sinusoidal{.width = shape.width, .scale = 0.02 * std::sqrt(2.0)};
  if (scheme == "learned") return Learned{.rows = shape.position_limit(), .width = shape.width};
  if (scheme == "rope") return Rope{.dims = dims, .scaling = shape.scaling};
  if (scheme == "xpos") {
    // The paper's 512 of 1,024 tokens.
    const XposScaling xpos = {.scale_base = std::max(1.0, static_cast<double>(shape.context) / 2),
                              .centre = shape.context / 2};
    return Rope{.dims = dims, .scaling = xpos};
  }
  if (scheme == "alibi") return Alibi{.heads = heads};
  if (scheme == "t5") {
    // The paper's 128 of 512 tokens, so that the last bucket, which all longer distances share, is trained.
    return T5{.heads = heads,
              .buckets = layout["position.table"].shape[0],
              .max_distance = std::max<std::int64_t>(32, shape.context / 4),
              .bidirectional = !shape.causal};
  }
  if (scheme == "kerple") return kerple_of(layout, parameters);
  if (scheme == "fire") return fire_of(shape, layout, parameters);
  return None{};
}

template <class T>
Position prepare_position(const Shape& shape, const Layout& layout, const T* parameters, std::int64_t length) {
  const std::int64_t reach = shape.random_positions > 0 ? shape.random_positions : length;
  Form form = form_of(shape, layout, parameters, reach);
  Position position;
  (std::holds_alternative<Addition>(form) ? position.embedding : position.attention) = std::move(form);
  return position;
}

Extents bias_gradient_shape(const Position& position, std::int64_t heads) {
  const Bias* const bias = std::get_if<Bias>(&position.attention);
  if (bias == nullptr) return {};
  if (const auto* const table = std::get_if<DistanceTable>(&bias->source)) return table_of(*table, heads).shape;
  if (const auto* const ratios = std::get_if<DistanceRatios>(&bias->source)) {
    const auto hidden = static_cast<std::int64_t>(ratios->hidden_weights.size());
    return {2 * hidden + heads * hidden + heads};
  }
  return {};  // no parameters: slopes are fixed
}

std::vector<double> bias_gradient(const Position& position, std::int64_t heads) {
  const Extents shape = bias_gradient_shape(position, heads);
  return std::vector<double>(shape.rank == 0 ? 0 : static_cast<std::size_t>(count_of(shape)));
}

template <class T> void position_backward(const Shape& shape, const Layout& layout, const T* parameters,
                                          std::span<const double> d_bias, T* gradients) {
  if (shape.scheme == "t5") {
    add_to(layout, "position.table", d_bias, gradients);
  } else if (shape.scheme == "kerple") {
    const Kerple kerple = kerple_of(layout, parameters);
    KerpleGradient d = backward(kerple, d_bias);
    for (std::size_t h = 0; h < kerple.amplitudes.size(); ++h) {  // d/d log a = a · d/da
      d.amplitudes[h] *= kerple.amplitudes[h];
      d.rates[h] *= kerple.rates[h];
    }
    add_to<T>(layout, "position.log_amplitudes", d.amplitudes, gradients);
    add_to<T>(layout, "position.log_rates", d.rates, gradients);
  } else if (shape.scheme == "fire") {
    std::size_t from = 0;
    for (const std::string_view name :
         {"position.hidden_weights", "position.hidden_biases", "position.output_weights", "position.output_biases"}) {
      const std::size_t count = layout[name].count;
      add_to(layout, name, d_bias.subspan(from, count), gradients);
      from += count;
    }
  }
}

#define POSENC_LAB_POSITION(T)                                                                \
  template Scheme scheme_of<T>(const Shape&, const Layout&, const T*);                        \
  template Position prepare_position<T>(const Shape&, const Layout&, const T*, std::int64_t); \
  template void position_backward<T>(const Shape&, const Layout&, const T*, std::span<const double>, T*);
POSENC_LAB_POSITION(float)
POSENC_LAB_POSITION(double)
#undef POSENC_LAB_POSITION

}  // namespace posenc::lab
