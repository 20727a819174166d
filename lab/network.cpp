#include "lab/network.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/products.h"
#include "posenc/apply.h"
#include "posenc/attention.h"

namespace posenc::lab {
namespace {

// One thread per call: the shards of a batch run in parallel.
constexpr Run kOneThread = {.stream = nullptr, .threads = 1};

template <class T> T* sized(std::vector<T>& values, std::int64_t count) {
  if (values.size() < static_cast<std::size_t>(count)) values.resize(count);
  return values.data();
}

// The sizes of a pass, and views of a layer's tensors.
template <class T> struct Pass {
  const Network<T>& network;
  const Position& position;
  const Batch& batch;
  Activations<T>& memory;
  std::int64_t tokens = batch.count * batch.length;
  std::int64_t width = network.shape.width;

  TokenRows<T> rows(std::vector<T>& values, std::int64_t columns) const {
    return {sized(values, tokens * columns), tokens, columns};
  }
  TokenRows<const T> read(const std::vector<T>& values, std::int64_t columns) const {
    return {values.data(), tokens, columns};
  }
  std::int64_t offset(std::string_view name) const { return network.layout[name].offset; }
  const T* parameter(std::string_view name) const { return network.parameters.data() + offset(name); }
  // [batch, heads, sequence, features] of queries (0), keys (1) or values (2), which are adjacent in a row.
  ConstTensorView heads(const std::vector<T>& qkv, int which) const {
    const Shape& shape = network.shape;
    return {qkv.data() + which * width,
            data_type_of<T>(),
            {batch.count, shape.heads, batch.length, shape.head_width()},
            {batch.length * 3 * width, shape.head_width(), 3 * width, 1}};
  }
  template <class View> View outputs(View whole) const {
    const Shape& shape = network.shape;
    whole.shape = {batch.count, shape.heads, batch.length, shape.head_width()};
    whole.strides = {batch.length * width, shape.head_width(), width, 1};
    return whole;
  }
  Extents logsumexp_shape() const { return {batch.count, network.shape.heads, batch.length}; }
  Positions positions() const { return {.ids = batch.positions}; }

  AttentionOptions options() const {
    AttentionOptions options;
    options.position = position.attention;
    options.causal = network.shape.causal;
    options.query_lengths = batch.lengths;
    options.key_lengths = batch.lengths;
    if (!batch.positions.empty()) options.query_positions = options.key_positions = positions();
    return options;
  }
};

template <class T> void attend_forward(const Pass<T>& pass, typename Activations<T>::Layer& layer) {
  AttentionOptions options = pass.options();
  const std::int64_t rows = pass.batch.count * pass.network.shape.heads * pass.batch.length;
  options.logsumexp = view(sized(layer.logsumexp, rows), pass.logsumexp_shape());
  sized(layer.mixed, pass.tokens * pass.width);
  const TensorView out = pass.outputs(TensorView(layer.mixed.data(), data_type_of<T>(), {1}));
  const ConstTensorView q = pass.heads(layer.qkv, 0), k = pass.heads(layer.qkv, 1), v = pass.heads(layer.qkv, 2);
  if (pass.memory.attention != nullptr) {
    pass.memory.attention->forward(out, q, k, v, options);
  } else {
    attention(out, q, k, v, options, kOneThread);
  }
}

template <class T>
void attend_backward(const Pass<T>& pass, const typename Activations<T>::Layer& layer, std::vector<double>& d_bias) {
  Activations<T>& memory = pass.memory;
  // attention_backward requires gradients that do not interleave; they are interleaved afterwards.
  const std::int64_t plane = pass.tokens * pass.width;
  T* const planes = sized(memory.d_planes, 3 * plane);
  const auto gradient = [&](int which) {
    return pass.outputs(TensorView(planes + which * plane, data_type_of<T>(), {1}));
  };
  AttentionGradients gradients;
  gradients.q = gradient(0);
  gradients.k = gradient(1);
  gradients.v = gradient(2);
  if (!d_bias.empty()) {
    gradients.parameters = view(d_bias.data(), bias_gradient_shape(pass.position, pass.network.shape.heads));
  }
  AttentionInputs inputs;
  inputs.q = pass.heads(layer.qkv, 0);
  inputs.k = pass.heads(layer.qkv, 1);
  inputs.v = pass.heads(layer.qkv, 2);
  inputs.out = pass.outputs(ConstTensorView(layer.mixed.data(), data_type_of<T>(), {1}));
  inputs.logsumexp = view(layer.logsumexp.data(), pass.logsumexp_shape());
  const ConstTensorView d_out = pass.outputs(ConstTensorView(memory.d_mixed.data(), data_type_of<T>(), {1}));
  if (memory.attention != nullptr) {
    memory.attention->backward(gradients, d_out, inputs, pass.options());
  } else {
    attention_backward(gradients, d_out, inputs, pass.options(), kOneThread);
  }
  T* to = sized(memory.d_qkv, 3 * plane);
  for (std::int64_t i = 0; i < pass.tokens; ++i) {
    for (int which = 0; which < 3; ++which, to += pass.width) {
      std::copy_n(planes + which * plane + i * pass.width, pass.width, to);
    }
  }
}

template <class T> void layer_forward(const Pass<T>& pass, std::int64_t index, std::vector<T>& next) {
  const std::string name = fmt::format("layer.{}", index);
  const std::int64_t width = pass.width;
  typename Activations<T>::Layer& layer = pass.memory.layers[index];
  normalise<T>(pass.rows(layer.normed1, width), pass.read(layer.x, width), pass.parameter(name + ".norm1.weight"),
               pass.parameter(name + ".norm1.bias"), sized(layer.means1, pass.tokens),
               sized(layer.inverses1, pass.tokens));
  project<T>(pass.rows(layer.qkv, 3 * width), pass.read(layer.normed1, width), pass.parameter(name + ".qkv.weight"),
             pass.parameter(name + ".qkv.bias"));
  attend_forward(pass, layer);
  sized(layer.middle, pass.tokens * width);
  std::copy_n(layer.x.begin(), pass.tokens * width, layer.middle.begin());
  project<T>(pass.rows(layer.middle, width), pass.read(layer.mixed, width), pass.parameter(name + ".out.weight"),
             pass.parameter(name + ".out.bias"), true);
  normalise<T>(pass.rows(layer.normed2, width), pass.read(layer.middle, width),
               pass.parameter(name + ".norm2.weight"), pass.parameter(name + ".norm2.bias"),
               sized(layer.means2, pass.tokens), sized(layer.inverses2, pass.tokens));
  project<T>(pass.rows(layer.up, 4 * width), pass.read(layer.normed2, width), pass.parameter(name + ".up.weight"),
             pass.parameter(name + ".up.bias"));
  gelu(sized(layer.active, pass.tokens * 4 * width), sized(layer.gates, pass.tokens * 4 * width), layer.up.data(),
       pass.tokens * 4 * width);
  sized(next, pass.tokens * width);
  std::copy_n(layer.middle.begin(), pass.tokens * width, next.begin());
  project<T>(pass.rows(next, width), pass.read(layer.active, 4 * width), pass.parameter(name + ".down.weight"),
             pass.parameter(name + ".down.bias"), true);
}

// d_x is the gradient of the layer's output, and is replaced by that of its input.
template <class T>
void layer_backward(const Pass<T>& pass, std::int64_t index, T* gradients, std::vector<double>& d_bias) {
  const std::string name = fmt::format("layer.{}", index);
  const std::int64_t width = pass.width;
  Activations<T>& memory = pass.memory;
  const typename Activations<T>::Layer& layer = memory.layers[index];
  const auto gradient = [&](const char* part) { return gradients + pass.offset(name + part); };

  project_backward<T>(pass.rows(memory.d_active, 4 * width), gradient(".down.weight"), gradient(".down.bias"),
                      pass.read(memory.d_x, width), pass.read(layer.active, 4 * width),
                      pass.parameter(name + ".down.weight"));
  gelu_backward(memory.d_active.data(), layer.up.data(), layer.gates.data(), pass.tokens * 4 * width);
  project_backward<T>(pass.rows(memory.d_normed, width), gradient(".up.weight"), gradient(".up.bias"),
                      pass.read(memory.d_active, 4 * width), pass.read(layer.normed2, width),
                      pass.parameter(name + ".up.weight"));
  normalise_backward<T>(pass.rows(memory.d_x, width), gradient(".norm2.weight"), gradient(".norm2.bias"),
                        pass.read(memory.d_normed, width), pass.read(layer.middle, width),
                        pass.parameter(name + ".norm2.weight"), layer.means2.data(), layer.inverses2.data());
  project_backward<T>(pass.rows(memory.d_mixed, width), gradient(".out.weight"), gradient(".out.bias"),
                      pass.read(memory.d_x, width), pass.read(layer.mixed, width),
                      pass.parameter(name + ".out.weight"));
  attend_backward(pass, layer, d_bias);
  project_backward<T>(pass.rows(memory.d_normed, width), gradient(".qkv.weight"), gradient(".qkv.bias"),
                      pass.read(memory.d_qkv, 3 * width), pass.read(layer.normed1, width),
                      pass.parameter(name + ".qkv.weight"));
  normalise_backward<T>(pass.rows(memory.d_x, width), gradient(".norm1.weight"), gradient(".norm1.bias"),
                        pass.read(memory.d_normed, width), pass.read(layer.x, width),
                        pass.parameter(name + ".norm1.weight"), layer.means1.data(), layer.inverses1.data());
}

}  // namespace

std::int64_t Batch::target_count() const {
  return std::count_if(targets.begin(), targets.end(), [](std::int32_t target) { return target >= 0; });
}

Batch part_of(const Batch& batch, std::int64_t first, std::int64_t count) {
  Batch part;
  part.count = count;
  part.length = batch.length;
  const auto cut = [&](auto& to, const auto& from, std::int64_t each) {
    if (!from.empty()) to.assign(from.begin() + first * each, from.begin() + (first + count) * each);
  };
  cut(part.tokens, batch.tokens, batch.length);
  cut(part.targets, batch.targets, batch.length);
  cut(part.positions, batch.positions, batch.length);
  cut(part.lengths, batch.lengths, 1);
  return part;
}

template <class T>
void forward(const Network<T>& network, const Position& position, const Batch& batch, Activations<T>& activations) {
  const Pass<T> pass{network, position, batch, activations};
  const Shape& shape = network.shape;
  activations.layers.resize(shape.layers);
  std::vector<T>& first = activations.layers.front().x;
  look_up<T>(pass.rows(first, pass.width), pass.parameter("token.table"), batch.tokens);
  if (const auto* const addition = std::get_if<Addition>(&position.embedding)) {
    add(view(first.data(), {batch.count, batch.length, pass.width}), pass.positions(), *addition, kOneThread);
  }
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const bool is_last = i + 1 == shape.layers;
    layer_forward(pass, i, is_last ? activations.x : activations.layers[i + 1].x);
  }
  normalise<T>(pass.rows(activations.normed, pass.width), pass.read(activations.x, pass.width),
               pass.parameter("norm.weight"), pass.parameter("norm.bias"), sized(activations.means, pass.tokens),
               sized(activations.inverses, pass.tokens));
  multiply(Matrix<T>{sized(activations.logits, pass.tokens * shape.vocabulary), shape.vocabulary},
           Matrix<const T>{activations.normed.data(), pass.width},
           Matrix<const T>{pass.parameter("token.table"), pass.width, true}, pass.tokens, shape.vocabulary,
           pass.width);
}

template <class T> std::vector<T> attention_weights(const Network<T>& network, const Position& position,
                                                    const Batch& batch, Activations<T>& activations,
                                                    std::int64_t layer) {
  const Pass<T> pass{network, position, batch, activations};
  const std::vector<T>& qkv = activations.layers[layer].qkv;
  const Extents shape = {batch.count, network.shape.heads, batch.length, batch.length};
  std::vector<T> weights(count_of(shape));
  std::vector<T> mixed(pass.tokens * pass.width);
  AttentionOptions options = pass.options();
  options.weights = view(weights.data(), shape);
  attention(pass.outputs(TensorView(mixed.data(), data_type_of<T>(), {1})), pass.heads(qkv, 0), pass.heads(qkv, 1),
            pass.heads(qkv, 2), options, kOneThread);
  return weights;
}

template <class T> double losses_of(const Batch& batch, Activations<T>& activations, std::int64_t vocabulary) {
  const std::int64_t tokens = batch.count * batch.length;
  activations.losses.resize(tokens);
  cross_entropy<T>({activations.logits.data(), tokens, vocabulary}, batch.targets, 0, activations.losses);
  double sum = 0;
  for (const RowLoss& loss : activations.losses) sum += loss.nll;
  return sum;
}

template <class T> double backward(const Network<T>& network, const Position& position, const Batch& batch,
                                   double scale, Activations<T>& activations, T* gradients) {
  const Pass<T> pass{network, position, batch, activations};
  const Shape& shape = network.shape;
  const std::int64_t width = pass.width, vocabulary = shape.vocabulary;
  activations.losses.resize(pass.tokens);
  cross_entropy<T>({activations.logits.data(), pass.tokens, vocabulary}, batch.targets, scale, activations.losses);
  double sum = 0;
  for (const RowLoss& loss : activations.losses) sum += loss.nll;

  const Matrix<const T> d_logits = {activations.logits.data(), vocabulary};
  T* const d_table = gradients + pass.offset("token.table");
  multiply(Matrix<T>{d_table, width}, Matrix<const T>{d_logits.data, vocabulary, true},
           Matrix<const T>{activations.normed.data(), width}, vocabulary, width, pass.tokens, true);
  multiply(Matrix<T>{sized(activations.d_normed, pass.tokens * width), width}, d_logits,
           Matrix<const T>{pass.parameter("token.table"), width}, pass.tokens, width, vocabulary);
  std::fill_n(sized(activations.d_x, pass.tokens * width), pass.tokens * width, T{0});
  normalise_backward<T>(pass.rows(activations.d_x, width), gradients + pass.offset("norm.weight"),
                        gradients + pass.offset("norm.bias"), pass.read(activations.d_normed, width),
                        pass.read(activations.x, width), pass.parameter("norm.weight"), activations.means.data(),
                        activations.inverses.data());
  std::vector<double> d_bias = bias_gradient(position, shape.heads);
  for (std::int64_t i = shape.layers - 1; i >= 0; --i) layer_backward(pass, i, gradients, d_bias);
  look_up_backward<T>(d_table, pass.read(activations.d_x, width), batch.tokens);
  if (shape.scheme == "learned") {
    const Slice& slice = network.layout["position.table"];
    add_backward(view(gradients + slice.offset, slice.shape),
                 view(std::as_const(activations.d_x).data(), {batch.count, batch.length, width}), pass.positions(), 0,
                 kOneThread);
  }
  position_backward<T>(shape, network.layout, network.parameters.data(), d_bias, gradients);
  return sum;
}

#define POSENC_LAB_NETWORK(T)                                                                                     \
  template void forward<T>(const Network<T>&, const Position&, const Batch&, Activations<T>&);                    \
  template std::vector<T> attention_weights<T>(const Network<T>&, const Position&, const Batch&, Activations<T>&, \
                                               std::int64_t);                                                     \
  template double losses_of<T>(const Batch&, Activations<T>&, std::int64_t);                                      \
  template double backward<T>(const Network<T>&, const Position&, const Batch&, double, Activations<T>&, T*);
POSENC_LAB_NETWORK(float)
POSENC_LAB_NETWORK(double)
#undef POSENC_LAB_NETWORK

}  // namespace posenc::lab
