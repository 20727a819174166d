#include "posenc/forms.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <type_traits>

#include "posenc/error.h"

namespace posenc {
namespace {
// In the order of Numerics.
constexpr std::array<std::string_view, 3> kNumericsNames = {"exact", "hf-f32", "ggml-f32"};

// The part of each kind of bias that belongs to one head; `heads`: their total number.
Slopes one_head(const Slopes& all, std::int64_t, std::int64_t head) {
  return {{all.slopes[static_cast<std::size_t>(head)]}};
}

DistanceTable one_head(const DistanceTable& all, std::int64_t heads, std::int64_t head) {
  DistanceTable one = all;
  if (one.weights.data != nullptr) {
    one.weights.data =
        static_cast<const std::byte*>(one.weights.data) + head * one.weights.strides[1] * size_of(one.weights.type);
    one.weights.shape[1] = 1;
    return one;
  }
  const auto stride = static_cast<std::size_t>(heads), rows = one.values.size() / stride;
  for (std::size_t row = 0; row < rows; ++row)
    one.values[row] = all.values[row * stride + static_cast<std::size_t>(head)];
  one.values.resize(rows);
  return one;
}

// [rows, features] is shared by all heads.
VectorsByDistance one_head(const VectorsByDistance& all, std::int64_t head) {
  VectorsByDistance one = all;
  ConstTensorView& table = one.table;
  if (table.data != nullptr && table.shape.rank == 3) {
    table = {static_cast<const std::byte*>(table.data) + head * table.strides[0] * size_of(table.type),
             table.type,
             {table.shape[1], table.shape[2]},
             {table.strides[1], table.strides[2]}};
  } else if (!one.values.empty() && one.shape.rank == 3) {
    one.shape = {all.shape[1], all.shape[2]};
    const auto first = all.values.begin() + head * count_of(one.shape);
    one.values.assign(first, first + count_of(one.shape));
  }
  return one;
}

DistanceVectors one_head(const DistanceVectors& all, std::int64_t heads, std::int64_t head) {
  DistanceVectors one = all;
  one.for_queries = one_head(all.for_queries, head);
  one.for_keys = one_head(all.for_keys, head);
  one.for_values = one_head(all.for_values, head);
  if (!all.query_offsets.empty() && heads > 0) {
    const auto features = static_cast<std::ptrdiff_t>(all.query_offsets.size()) / heads;
    const auto first = all.query_offsets.begin() + head * features;
    one.query_offsets.assign(first, first + features);
  }
  return one;
}

DistanceRatios one_head(const DistanceRatios& all, std::int64_t, std::int64_t head) {
  DistanceRatios one = all;
  const auto width = static_cast<std::ptrdiff_t>(all.hidden_weights.size());
  const auto first = all.output_weights.begin() + head * width;
  one.output_weights.assign(first, first + width);
  one.output_biases = {all.output_biases[static_cast<std::size_t>(head)]};
  return one;
}

GateSums one_head(const GateSums&, std::int64_t, std::int64_t) { return {}; }

CountedGates one_head(const CountedGates& all, std::int64_t, std::int64_t head) {
  VectorsByDistance vectors;
  vectors.table = all.table;
  return {one_head(vectors, head).table};
}

// A chain multiplies its factors from wave to wave; only without one is each factor the wave's own frequency.
std::vector<double> radians_per_position(const std::vector<Frequency>& exact, const Float32Angles& angles) {
  if (!angles.factors.empty() && angles.chain == 0) return {angles.factors.begin(), angles.factors.end()};
  std::vector<double> radians;
  for (const Frequency& frequency : exact) radians.push_back(radians_of(frequency));
  return radians;
}
}  // namespace

std::string_view name_of(Numerics numerics) noexcept { return kNumericsNames[static_cast<std::size_t>(numerics)]; }

Numerics numerics_from(std::string_view name) {
  for (std::size_t i = 0; i < kNumericsNames.size(); ++i) {
    if (kNumericsNames[i] == name) return static_cast<Numerics>(i);
  }
  raise(fmt::format("numerics must be exact, hf-f32 or ggml-f32 but is '{}'", name));
}

ConstTensorView table_of(const DistanceTable& source, std::int64_t heads) noexcept {
  if (source.weights.data != nullptr) return source.weights;
  const std::int64_t rows = heads > 0 ? static_cast<std::int64_t>(source.values.size()) / heads : 0;
  return view(source.values.data(), {rows, heads});
}

ConstTensorView table_of(const VectorsByDistance& vectors) noexcept {
  if (vectors.table.data != nullptr || vectors.values.empty()) return vectors.table;
  return view(vectors.values.data(), vectors.shape);
}

std::int64_t query_features_of(const DistanceVectors& source) noexcept {
  const ConstTensorView table = table_of(source.for_queries);
  return table.data == nullptr ? 0 : table.shape.back(0);
}

bool needs_content(const Bias& bias) noexcept {
  return std::holds_alternative<DistanceVectors>(bias.source) || std::holds_alternative<GateSums>(bias.source) ||
         std::holds_alternative<CountedGates>(bias.source);
}

Bias head_of(const Bias& bias, std::int64_t head) {
  if (head < 0 || (bias.heads > 0 && head >= bias.heads)) {
    raise(fmt::format("head_of: head {} of a bias with {} heads", head, bias.heads));
  }
  Bias one{1, bias.source};
  std::visit([&](const auto& source) { one.source = one_head(source, bias.heads, head); }, bias.source);
  return one;
}

int position_axes_of(const Addition& addition) noexcept {
  const Waves* const waves = waves_of(addition);
  return waves == nullptr ? 1 : waves->axes;
}

int position_axes_of(const Rotation& rotation) noexcept { return has_table(rotation) ? 1 : rotation.position_axes; }

int position_axes_of(const Bias& bias) noexcept {
  if (const auto* const table = std::get_if<DistanceTable>(&bias.source)) {
    return static_cast<int>(table->axes.size());
  }
  if (const auto* const vectors = std::get_if<DistanceVectors>(&bias.source)) {
    for (const VectorsByDistance* const part : {&vectors->for_queries, &vectors->for_keys, &vectors->for_values}) {
      if (table_of(*part).data != nullptr) return static_cast<int>(part->axes.size());
    }
  }
  return 1;
}

int position_axes_of(const Form& form) noexcept {
  const auto ask = []<class F>(const F& one) {
    if constexpr (std::is_same_v<F, Nothing>)
      return 1;
    else
      return position_axes_of(one);
  };
  return std::visit(ask, form);
}

const Waves* waves_of(const Addition& addition) noexcept { return std::get_if<Waves>(&addition.source); }

const Waves* waves_of(const Form& form) noexcept {
  const auto* const addition = std::get_if<Addition>(&form);
  return addition == nullptr ? nullptr : waves_of(*addition);
}

std::vector<double> frequencies_of(const Waves& waves) {
  std::vector<Frequency> exact;
  for (const Wave& wave : waves.waves) exact.push_back(wave.frequency);
  return radians_per_position(exact, waves.float32_angles);
}

std::vector<double> frequencies_of(const Rotation& rotation) {
  return radians_per_position(rotation.frequencies, rotation.float32_angles);
}

namespace {

void replace_table(ConstTensorView& table, const ConstTensorView& weights, std::string_view what) {
  if (table.data == nullptr) raise(fmt::format("bind: the form reads no {}", what));
  if (weights.data == nullptr || weights.shape != table.shape || weights.strides.rank != weights.shape.rank) {
    raise(fmt::format("bind: {} of shape {} cannot replace {}", what, to_string(weights.shape),
                      to_string(table.shape)));
  }
  table = weights;
}

}  // namespace

void bind(Addition& form, ConstTensorView weights) {
  auto* const rows = std::get_if<Rows>(&form.source);
  if (rows == nullptr) raise("bind: the form reads no weights");
  if (rows->owner.data() != nullptr)
    raise("bind: the form's table was made from the weights; prepare the scheme again");
  replace_table(rows->table, weights, "weights");
}

void bind(Bias& form, ConstTensorView weights, ConstTensorView key_weights, ConstTensorView value_weights) {
  if (auto* const table = std::get_if<DistanceTable>(&form.source)) {
    if (key_weights.data != nullptr) raise("bind: the form reads no key_weights");
    if (value_weights.data != nullptr) raise("bind: the form reads no value_weights");
    replace_table(table->weights, weights, "weights");
    return;
  }
  if (auto* const counted = std::get_if<CountedGates>(&form.source)) {
    if (key_weights.data != nullptr) raise("bind: the form reads no key_weights");
    if (value_weights.data != nullptr) raise("bind: the form reads no value_weights");
    replace_table(counted->table, weights, "weights");
    return;
  }
  auto* const vectors = std::get_if<DistanceVectors>(&form.source);
  if (vectors == nullptr) raise("bind: the form reads no weights");
  DistanceVectors bound = *vectors;
  if (bound.for_queries.table.data == nullptr && !bound.for_queries.values.empty()) {
    raise("bind: the form's vectors were computed from the weights: prepare it again");
  }
  replace_table(bound.for_queries.table, weights, "weights");
  if (key_weights.data != nullptr) replace_table(bound.for_keys.table, key_weights, "key_weights");
  if (value_weights.data != nullptr) replace_table(bound.for_values.table, value_weights, "value_weights");
  *vectors = std::move(bound);
}

void bind(Form& form, ConstTensorView weights, ConstTensorView key_weights, ConstTensorView value_weights) {
  if (auto* const bias = std::get_if<Bias>(&form)) {
    bind(*bias, weights, key_weights, value_weights);
    return;
  }
  auto* const addition = std::get_if<Addition>(&form);
  if (addition == nullptr || key_weights.data != nullptr || value_weights.data != nullptr) {
    raise(fmt::format("bind: the form reads no {}", addition == nullptr           ? "weights"
                                                    : key_weights.data != nullptr ? "key_weights"
                                                                                  : "value_weights"));
  }
  bind(*addition, weights);
}

}  // namespace posenc
