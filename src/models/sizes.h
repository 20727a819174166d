#pragma once

#include <cstdint>
#include <optional>

#include "models/config.h"
#include "models/families.h"

namespace posenc::models {

/// Numbers that no model has are a slip, and would be paid for in time and memory.
inline constexpr std::int64_t kMostLayers = 4096, kMostFeatures = 65536;

/// Nothing where neither the file nor the class says it.
std::optional<std::int64_t> hidden_size(const Config& config, const Family& family);
std::optional<std::int64_t> heads_of(const Config& config, const Family& family);
std::optional<std::int64_t> length_of(const Config& config, const Family& family);

/// Throws: Error past kMostLayers.
std::int64_t layer_count(const Config& config, const Family& family);

/// Features of a head: `own_key`, else head_dim and its like, else hidden_size / heads.
/// Throws: Error where it cannot be known, or is past kMostFeatures.
std::int64_t head_size(const Config& config, const Family& family, std::string_view own_key = "");

/// The patches of an image of the size that the config names.
struct PatchGrid {
  std::int64_t rows = 0, columns = 0;
};
std::optional<PatchGrid> patch_grid_of(const Config& config, const Family& family);

/// Rows of a table by image patch: the family's key, or image_size / patch_size squared; nothing where one of them is
/// missing.
std::optional<std::int64_t> patches_of(const Config& config, const Family& family);

}  // namespace posenc::models
