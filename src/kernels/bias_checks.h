#pragma once

#include <string_view>

#include "kernels/checks.h"
#include "kernels/job.h"
#include "posenc/apply.h"

namespace posenc::kernels {

/// Checks that a bias is consistent: as many slopes as heads, rows within the table, and so on. `heads` is the
/// tensor's number of heads. Throws: Error that begins with the verb.
void check_bias(std::string_view verb, const Bias& form, std::int64_t heads);

/// Positions may be negative, unless the form depends on more than their distance (FIRE).
inline RowLimit limit_of(const Bias& form) {
  return {.is_signed = !std::holds_alternative<DistanceRatios>(form.source)};
}

/// Checks that the form covers the distances between the tokens; `queries` and `keys` are tokens of `batch`
/// sequences.
struct BiasTokens {
  std::int64_t batch, queries, keys;
};
void check_distances(std::string_view verb, const Bias& form, const QueryKey<TokenPositions>& positions,
                     const BiasTokens& tokens);

}  // namespace posenc::kernels
