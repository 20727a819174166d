#include "models/classes.h"

namespace posenc::models {

const ConfigClass* class_of(std::string_view type) noexcept {
  for (const ConfigClass& row : config_classes()) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

std::vector<std::string_view> class_types() {
  std::vector<std::string_view> types;
  for (const ConfigClass& row : config_classes()) {
    if (!row.type.starts_with('=')) types.push_back(row.type);
  }
  return types;
}

}  // namespace posenc::models
