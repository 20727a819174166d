#include "posenc/forms.h"

#include <fmt/format.h>

#include <array>

#include "posenc/error.h"

namespace posenc {
namespace {
// In the order of Numerics.
constexpr std::array<std::string_view, 3> kNumericsNames = {"exact", "hf-f32", "ggml-f32"};
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

int position_axes_of(const Bias& bias) noexcept {
  const auto* const table = std::get_if<DistanceTable>(&bias.source);
  return table == nullptr ? 1 : static_cast<int>(table->axes.size());
}

}  // namespace posenc
