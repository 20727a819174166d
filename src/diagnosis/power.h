#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnosis/rivals.h"

namespace posenc::diagnosis {

/// What a comparison of two tensors with a scheme sees of each rival.
struct Probe {
  Scheme scheme = {};
  Extents shape = {};
  std::vector<double> before = {};  // dense
  Surroundings where = {};
  double tolerance = 0, floor = 0;  // of the comparison
  double rounding = 0;              // relative error that a port's arithmetic in its type may add
  std::vector<bool> skipped = {};   // elements that are not compared; empty: none
  bool is_up_to_query = false;      // a constant per query does not count
};

/// The largest difference that each rival makes, in units of what the comparison sees for certain: above 1, such a port
/// would have differed.
std::vector<double> differences(const Probe& probe, std::span<const Rival> rivals);

/// What the list of rivals depends on, for these tokens.
RivalInputs rival_inputs(const Probe& probe);

/// Tokens that tell all rivals apart, whatever their values: as many as there are, at the earliest positions; for a
/// bias, the fewest keys.
struct Enough {
  std::int64_t tokens = 0;
  std::vector<std::int64_t> first_positions = {};  // of each axis
};
std::optional<Enough> enough_tokens(const Probe& probe);

}  // namespace posenc::diagnosis
