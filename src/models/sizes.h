#pragma once

#include <cstdint>
#include <optional>

#include "models/config.h"
#include "models/families.h"

namespace posenc::models {

/// Larger numbers than any model has are mistakes, and would cost time and memory.
inline constexpr std::int64_t kMostLayers = 4096, kMostFeatures = 65536;

/// Nothing if neither the file nor the class gives it.
std::optional<std::int64_t> hidden_size(const Config& config, const Family& family);
std::optional<std::int64_t> heads_of(const Config& config, const Family& family);
std::optional<std::int64_t> length_of(const Config& config, const Family& family);

/// The heads of queries and of keys, each if it is an integer: some families have one for each layer.
struct HeadCounts {
  std::optional<std::int64_t> heads, key_heads;
};
HeadCounts head_counts_of(Config config);

/// Throws: Error past kMostLayers.
std::int64_t layer_count(const Config& config, const Family& family);

/// Features of a head: `own_key`, else head_dim and similar keys, else hidden_size / heads.
/// Throws: Error if it cannot be determined, or exceeds kMostFeatures.
std::int64_t head_size(const Config& config, const Family& family, std::string_view own_key = "");

/// The patches of an image of the size given in the config.
struct PatchGrid {
  std::int64_t rows = 0, columns = 0;
};
std::optional<PatchGrid> patch_grid_of(const Config& config, const Family& family);

/// Rows of a table by image patch: the family's key, or image_size / patch_size squared; nothing if one of them is
/// missing.
std::optional<std::int64_t> patches_of(const Config& config, const Family& family);

}  // namespace posenc::models
