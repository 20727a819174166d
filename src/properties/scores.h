#pragma once

#include <cstdint>
#include <vector>

#include "posenc/forms.h"
#include "properties/rows.h"

namespace posenc::properties {

/// Heads that a form has numbers for, and features that its queries and keys have.
std::int64_t heads_of(const Form& form) noexcept;
std::int64_t head_features_of(const Form& form) noexcept;
/// Features of what meets the form's vectors in place of q; 0: q does, or there are none.
std::int64_t own_query_features(const Form& form) noexcept;

/// A query and a key, by their places in a sample.
struct ScorePair {
  std::size_t query = 0, key = 0;
};
std::vector<ScorePair> all_pairs(const Sample& sample);

/// One query and one key, the same at every position.
struct QueryAndKey {
  std::vector<double> q, k;  // of length 1
};
QueryAndKey random_query_and_key(std::int64_t features, std::int64_t seed);

/// What attention makes of them before the softmax, [pairs, heads], in double: the logarithm of Σ e^score over the
/// one key there is. For an Addition, q and k are two tokens, which get the vectors of their positions added first.
std::vector<double> scores_of(const Form& form, const Sample& sample, const std::vector<ScorePair>& pairs,
                              const QueryAndKey& content);

}  // namespace posenc::properties
