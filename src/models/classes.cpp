#include "models/classes.h"

#include <array>

namespace posenc::models {
namespace {

auto class_tables() {
  return std::to_array(
      {classes_a_c(), classes_d_g(), classes_h_m(), classes_n_r(), classes_s_z(), classes_elsewhere()});
}

}  // namespace

const ConfigClass* class_of(std::string_view type) noexcept {
  for (const std::span<const ConfigClass> rows : class_tables()) {
    for (const ConfigClass& row : rows) {
      if (row.type == type) return &row;
    }
  }
  return nullptr;
}

std::vector<std::string_view> class_types() {
  std::vector<std::string_view> types;
  for (const std::span<const ConfigClass> rows : class_tables()) {
    for (const ConfigClass& row : rows) {
      if (!row.type.starts_with('=')) types.push_back(row.type);
    }
  }
  return types;
}

}  // namespace posenc::models
