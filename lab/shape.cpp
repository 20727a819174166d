#include "lab/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab/philox.h"
#include "posenc/error.h"
#include "posenc/scheme.h"

namespace posenc::lab {
namespace {

constexpr double kDeviation = 0.02;
constexpr std::int64_t kFireHidden = 32, kT5Buckets = 32;

struct LayoutMaker {
  Layout layout = {};
  std::uint32_t stream = 0;

  Slice& add(std::string name, const Extents& shape) {
    Slice slice;
    slice.name = std::move(name);
    slice.shape = shape;
    slice.count = count_of(shape);
    slice.offset = (layout.count + 15) / 16 * 16;
    slice.stream = stream++;
    layout.count = slice.offset + slice.count;
    layout.slices.push_back(std::move(slice));
    return layout.slices.back();
  }
  void add_matrix(std::string name, const Extents& shape, double deviation) {
    Slice& slice = add(std::move(name), shape);
    slice.deviation = deviation;
    slice.decays = true;
  }
  void add_norm(const std::string& name, std::int64_t width) {
    add(name + ".weight", {width}).start = 1;
    add(name + ".bias", {width});
  }
};

// The trained parameters of a scheme, shared by all layers.
void add_position(LayoutMaker& maker, const Shape& shape) {
  maker.stream = 1U << 20;
  const std::size_t before = maker.layout.slices.size();
  if (shape.scheme == "learned") {
    maker.add("position.table", {shape.position_limit(), shape.width}).deviation = kDeviation;
  } else if (shape.scheme == "t5") {
    maker.add("position.table", {kT5Buckets, shape.heads}).deviation = kDeviation;
  } else if (shape.scheme == "kerple") {
    // Logarithms, so that amplitude and rate stay positive; both start at 1.
    maker.add("position.log_amplitudes", {shape.heads});
    maker.add("position.log_rates", {shape.heads});
  } else if (shape.scheme == "fire") {
    maker.add("position.hidden_weights", {kFireHidden}).deviation = 1;
    maker.add("position.hidden_biases", {kFireHidden}).deviation = 0.5;
    maker.add("position.output_weights", {shape.heads, kFireHidden}).deviation = 1 / std::sqrt(kFireHidden);
    maker.add("position.output_biases", {shape.heads});
  }
  for (std::size_t i = before; i < maker.layout.slices.size(); ++i) maker.layout.slices[i].is_position = true;
}

const Json& member(const Json& json, std::string_view name) {
  const Json* const found = json.find(name);
  if (found == nullptr) raise(fmt::format("lab: the model's description has no \"{}\"", name));
  return *found;
}
std::int64_t integer(const Json& json, std::string_view name) {
  const auto* const value = member(json, name).as<std::int64_t>();
  if (value == nullptr) raise(fmt::format("lab: \"{}\" in the model's description must be an integer", name));
  return *value;
}

}  // namespace

const std::vector<std::string_view>& trainable_schemes() {
  static const std::vector<std::string_view> names = {"none",  "sinusoidal", "learned", "rope", "xpos",
                                                      "alibi", "t5",         "kerple",  "fire"};
  return names;
}

std::string title_of(const Shape& shape) {
  return shape.scheme + (shape.random_positions > 0 ? " + random positions" : "");
}

void check_between(std::string_view field, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  raise(fmt::format("lab: {} must be {} to {} but is {}", field, least, most, value));
}

void check(const Shape& shape) {
  const auto& names = trainable_schemes();
  if (std::find(names.begin(), names.end(), shape.scheme) == names.end()) {
    raise(fmt::format("lab: unknown scheme '{}' ({})", shape.scheme, suggestion(shape.scheme, names)));
  }
  check_between("layers", shape.layers, 1, 64);
  check_between("heads", shape.heads, 1, 256);
  check_between("width", shape.width, 2, 8192);
  check_between("vocabulary", shape.vocabulary, 2, 65536);
  check_between("context", shape.context, 2, 1 << 16);
  check_between("longest", shape.longest, shape.context, 1 << 20);
  if (shape.width % (2 * shape.heads) != 0) {
    raise(fmt::format("lab: width must be a multiple of 2·heads, {}, but is {}", 2 * shape.heads, shape.width));
  }
  if (shape.random_positions != 0) check_between("random positions", shape.random_positions, shape.longest, 1 << 20);
  if (!std::holds_alternative<NoScaling>(shape.scaling) && shape.scheme != "rope") {
    raise(fmt::format("lab: scaling extends rope, but the scheme is {}", shape.scheme));
  }
}

Json to_json(const Shape& shape) {
  const Json scaling = *json_of(Rope{.scaling = shape.scaling}).find("scaling");
  return Json::Object{
      {"scheme", shape.scheme},   {"layers", shape.layers},         {"heads", shape.heads},
      {"width", shape.width},     {"vocabulary", shape.vocabulary}, {"causal", shape.causal},
      {"context", shape.context}, {"longest", shape.longest},       {"random_positions", shape.random_positions},
      {"scaling", scaling}};
}

Shape shape_from_json(const Json& json) {
  Shape shape;
  const auto* const scheme = member(json, "scheme").as<std::string>();
  const bool* const causal = member(json, "causal").as<bool>();
  if (scheme == nullptr || causal == nullptr) raise("lab: the model's description has a field of the wrong type");
  shape.scheme = *scheme;
  shape.causal = *causal;
  shape.layers = integer(json, "layers");
  shape.heads = integer(json, "heads");
  shape.width = integer(json, "width");
  shape.vocabulary = integer(json, "vocabulary");
  shape.context = integer(json, "context");
  shape.longest = integer(json, "longest");
  shape.random_positions = integer(json, "random_positions");
  const Json rope = Json::Object{{"scheme", "rope"}, {"scaling", member(json, "scaling")}};
  shape.scaling = *std::get<Rope>(scheme_from_json(dump_json(rope))).scaling;
  check(shape);
  return shape;
}

const std::vector<std::string_view>& extension_names() {
  static const std::vector<std::string_view> names = {"none", "linear", "ntk", "yarn", "llama3"};
  return names;
}

RopeScaling extension_named(std::string_view name, double factor, std::int64_t trained) {
  if (name == "none") return NoScaling{};
  if (name == "linear") return LinearScaling{factor};
  if (name == "ntk") return NtkScaling{factor};
  if (name == "yarn") return YarnScaling{.factor = factor, .original_length = trained};
  if (name == "llama3") return Llama3Scaling{.factor = factor, .original_length = trained};
  raise(fmt::format("lab: unknown scaling '{}' ({})", name, suggestion(name, extension_names())));
}

const Slice& Layout::operator[](std::string_view name) const {
  for (const Slice& slice : slices) {
    if (slice.name == name) return slice;
  }
  raise(fmt::format("lab: there is no parameter '{}'", name));
}

Layout layout_of(const Shape& shape) {
  check(shape);
  LayoutMaker maker;
  const std::int64_t width = shape.width;
  maker.add_matrix("token.table", {shape.vocabulary, width}, kDeviation);
  // The outputs that are added to the residual stream, 2·layers in number, start smaller (Radford et al., 2019).
  const double added = kDeviation / std::sqrt(2.0 * static_cast<double>(shape.layers));
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    const std::string layer = fmt::format("layer.{}", i);
    maker.add_norm(layer + ".norm1", width);
    maker.add_matrix(layer + ".qkv.weight", {width, 3 * width}, kDeviation);
    maker.add(layer + ".qkv.bias", {3 * width});
    maker.add_matrix(layer + ".out.weight", {width, width}, added);
    maker.add(layer + ".out.bias", {width});
    maker.add_norm(layer + ".norm2", width);
    maker.add_matrix(layer + ".up.weight", {width, 4 * width}, kDeviation);
    maker.add(layer + ".up.bias", {4 * width});
    maker.add_matrix(layer + ".down.weight", {4 * width, width}, added);
    maker.add(layer + ".down.bias", {width});
  }
  maker.add_norm("norm", width);
  add_position(maker, shape);
  return std::move(maker.layout);
}

std::int64_t parameter_count(const Layout& layout) {
  std::int64_t count = 0;
  for (const Slice& slice : layout.slices) count += slice.count;
  return count;
}

template <class T> std::vector<T> initial_parameters(const Layout& layout, std::uint64_t seed) {
  std::vector<T> values(layout.count, T{0});
  for (const Slice& slice : layout.slices) {
    Stream random(seed, Purpose::kInitial, slice.stream, 0);
    for (std::int64_t i = 0; i < slice.count; ++i) {
      const double value = slice.deviation > 0 ? slice.deviation * random.normal() : slice.start;
      values[slice.offset + i] = static_cast<T>(value);
    }
  }
  return values;
}
template std::vector<float> initial_parameters<float>(const Layout&, std::uint64_t);
template std::vector<double> initial_parameters<double>(const Layout&, std::uint64_t);

}  // namespace posenc::lab
