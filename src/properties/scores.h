#pragma once

#include <cstdint>
#include <vector>

#include "posenc/forms.h"
#include "properties/rows.h"

namespace posenc::properties {

/// The number of heads for which a form has values, and of features of its queries and keys.
std::int64_t heads_of(const Form& form) noexcept;
std::int64_t head_features_of(const Form& form) noexcept;
/// The number of features of the queries that multiply the form's vectors; 0 if q does, or if it has no vectors.
std::int64_t own_query_features(const Form& form) noexcept;

/// The indices of a query and a key in a sample.
struct ScorePair {
  std::size_t query = 0, key = 0;
};
std::vector<ScorePair> all_pairs(const Sample& sample);

/// Whether what the form adds to a score depends on the tokens between key and query: sums of gates, contextual positions.
bool reads_tokens_between(const Form& form) noexcept;
/// All pairs of a query and a key at or before it, in a sequence of this many tokens.
std::vector<ScorePair> causal_pairs(std::size_t tokens);

/// One query and one key, the same at every position.
struct QueryAndKey {
  std::vector<double> q, k;  // of length 1
};
QueryAndKey random_query_and_key(std::int64_t features, std::int64_t seed);

/// Their scores in attention, before the softmax, [pairs, heads], in double: the logarithm of Σ e^score over a single
/// key. For an Addition, q and k are two tokens, which get the vectors of their positions added first.
std::vector<double> scores_of(const Form& form, const Sample& sample, const std::vector<ScorePair>& pairs,
                              const QueryAndKey& content);
/// The same, [pairs, heads], of a query and a key inside a sequence: all other keys, and gates, are drawn from the seed, and
/// the query is the last token. Keys must not come after their query.
std::vector<double> scores_in_sequence(const Form& form, const std::vector<ScorePair>& pairs,
                                       const QueryAndKey& content, std::int64_t seed);
/// The logarithm of a gate between 0 and 1: ln σ(logit).
double log_gate(double logit) noexcept;

}  // namespace posenc::properties
