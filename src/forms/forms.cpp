#include "posenc/forms.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <type_traits>

#include "forms/checks.h"
#include "posenc/error.h"

namespace posenc {
namespace {
// In the order of Numerics.
constexpr std::array<std::string_view, 3> kNumericsNames = {"exact", "hf-f32", "ggml-f32"};

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

int position_axes_of(const Addition& addition) noexcept {
  const Waves* const waves = waves_of(addition);
  return waves == nullptr ? 1 : waves->axes;
}

int position_axes_of(const Rotation& rotation) noexcept { return has_table(rotation) ? 1 : rotation.position_axes; }

int position_axes_of(const Form& form) noexcept {
  const auto ask = []<class F>(const F& one) {
    if constexpr (std::is_same_v<F, Nothing>)
      return 1;
    else
      return position_axes_of(one);
  };
  return std::visit(ask, form);
}

Form slice_heads(const Form& form, std::int64_t first, std::int64_t count) {
  if (const auto* const rotation = std::get_if<Rotation>(&form)) return slice_heads(*rotation, first, count);
  if (const auto* const bias = std::get_if<Bias>(&form)) return slice_heads(*bias, first, count);
  Form some = form;
  auto* const nothing = std::get_if<Nothing>(&some);
  const bool by_head = nothing != nullptr && nothing->temperature && !nothing->temperature->head_scales.empty();
  check_head_slice(first, count, by_head ? static_cast<std::int64_t>(nothing->temperature->head_scales.size()) : 0);
  if (by_head) {
    std::vector<double>& scales = nothing->temperature->head_scales;
    scales = {scales.begin() + first, scales.begin() + first + count};
  }
  return some;
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
  return radians_per_position(rotation.frequencies, pair_waves_of(rotation).float32_angles);
}

void bind(Addition& form, ConstTensorView weights) {
  auto* const rows = std::get_if<Rows>(&form.source);
  if (rows == nullptr) raise("bind: the form reads no weights");
  if (rows->owner) raise("bind: the form's table was made from the weights; prepare the scheme again");
  replace_table(rows->table, weights, "weights");
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
