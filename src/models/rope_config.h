#pragma once

#include <cstdint>
#include <optional>

#include "models/config.h"
#include "models/families.h"
#include "posenc/model.h"

namespace posenc::models {

/// What a reading says beside its result; merged without repeats.
struct Remarks {
  std::vector<std::string> assumed, warnings;
};
void say(std::vector<std::string>& list, std::string text);

/// One dictionary of rope parameters, as transformers 5 or 4 writes it.
struct RopeDictionary {
  std::optional<Config> entries = {};  ///< rope_parameters or rope_scaling, or one layer type within
  bool is_nested = false;              ///< it belongs to one type of layers alone
};

/// What else decides the scheme.
struct RopeFacts {
  const Config& config;
  const Family& family;
  std::int64_t head = 0;                      ///< features of a head
  double base = 0;                            ///< where the dictionary has none
  std::optional<std::int64_t> length = {};    ///< max_position_embeddings
  std::optional<std::int64_t> original = {};  ///< original_max_position_embeddings at the top level
};

struct RopeReading {
  Rope rope;
  std::optional<std::int64_t> trained_length = {};
  std::optional<std::int64_t> usable_length = {};
  std::optional<double> attn_factor = {};
};

/// Throws: Error for an unknown rope_type, and for parameters that are missing or outside their range.
RopeReading read_rope(const RopeDictionary& dictionary, const RopeFacts& facts, Remarks& remarks);

}  // namespace posenc::models
