#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "posenc/positions.h"

namespace posenc {

/// A token whose position id is not the expected one.
struct PositionDifference {
  std::int64_t row = 0, token = 0;  ///< of the ids [batch, sequence]
  std::int64_t expected = 0, got = 0;
};

/// What a comparison of position ids with a mask, or with the boundaries of packed sequences, found.
struct PositionCheck {
  std::int64_t tokens = 0;     ///< that were compared: padding is not
  std::int64_t differing = 0;  ///< of these
  std::optional<PositionDifference> first = {};
  std::string cause = {};     ///< what explains every difference; "" if nothing known does
  std::string untested = {};  ///< what these inputs cannot tell; "": nothing
  bool agrees() const { return tokens > 0 && differing == 0; }
};

/// Compares ids [batch, sequence] with those that the mask gives (positions_from_mask). The position of padding does not
/// matter. Throws: Error if the sizes differ or are no multiple of the batch.
PositionCheck check_positions(std::span<const std::int64_t> ids, std::span<const std::int64_t> mask,
                              const MaskOptions& options = {});

/// Compares ids [sequence] with packed sequences, whose boundaries are those of flash attention: 0, the end of each
/// sequence, and last the number of tokens.
/// Throws: Error if the boundaries do not start with 0, decrease, or do not end with the number of ids.
PositionCheck check_packed_positions(std::span<const std::int64_t> ids, std::span<const std::int64_t> boundaries);

}  // namespace posenc
