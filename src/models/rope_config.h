#pragma once

#include <cstdint>
#include <optional>

#include "models/config.h"
#include "models/families.h"
#include "posenc/model.h"

namespace posenc::models {

/// One dictionary of rope parameters, as transformers 5 or 4 writes it.
struct RopeDictionary {
  std::optional<Config> entries = {};  ///< rope_parameters or rope_scaling, or one layer type within it
  bool is_nested = false;              ///< it belongs to a single layer type
  bool is_top_ignored = false;         ///< partial_rotary_factor at the top does not apply
};

/// What else determines the scheme.
struct RopeFacts {
  const Config& config;
  const Family& family;
  std::int64_t head = 0;                    ///< features of a head
  double base = 0;                          ///< only of this layer or type; takes precedence over the config's own
  bool is_base_fixed = false;               ///< and over the dictionary's
  std::optional<std::int64_t> length = {};  ///< max_position_embeddings
};

struct RopeReading {
  Rope rope;
  std::optional<std::int64_t> trained_length = {};
  std::optional<std::int64_t> usable_length = {};
  std::optional<double> attn_factor = {}, yarn_ratio = {};
  std::string problem = {};  ///< why there is no rotation; "" if there is one
};

/// Throws: Error for an unknown rope_type, and for parameters that are missing or out of range.
RopeReading read_rope(const RopeDictionary& dictionary, const RopeFacts& facts, Remarks& remarks);

}  // namespace posenc::models
