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

}  // namespace posenc
