#pragma once

// What the rest of the library asks about a bias, whatever its kind. A loop over many scores asks for the kind once,
// with with_term of all.h.

#include <string_view>
#include <variant>

#include "posenc/forms.h"
#include "terms/term.h"
#include "terms/tokens.h"

namespace posenc::terms {

/// "slopes", "distance-table" …
std::string_view name_of(const Bias& bias) noexcept;

/// Checks that a bias is consistent: as many slopes as heads, rows within the table, and so on. `heads` is the
/// tensor's number of heads. Throws: Error that begins with the verb.
void check(std::string_view verb, const Bias& bias, std::int64_t heads);

/// Checks that the bias covers the positions of the tokens and the distances between them.
/// Throws: Error that begins with the verb.
struct TokenCounts {
  std::int64_t batch, queries, keys;
};
void check_positions(std::string_view verb, const Bias& bias, const TokenPositions& queries,
                     const TokenPositions& keys, const TokenCounts& counts);
/// Throws: Error that begins with the verb, if vectors do not have the features of q, k and v.
void check_features(std::string_view verb, const Bias& bias, std::int64_t q, std::int64_t v);
/// Throws: Error that begins with the verb, if only attention can add the bias.
void refuse_content(std::string_view verb, const Bias& bias);

/// Whether the bias depends only on distances, so that positions may be negative.
bool has_signed_positions(const Bias& bias) noexcept;
/// Positions 0 … reach − 1 and all distances between them are covered; kPositionLimit: any.
std::int64_t reach(const Bias& bias) noexcept;
/// Whether it depends on the tokens between key and query.
bool reads_tokens_between(const Bias& bias) noexcept;
/// The features that a query and a key must have; 0: any number.
std::int64_t features(const Bias& bias) noexcept;
Cost cost(const Bias& bias, const CostSizes& sizes) noexcept;
ConstTensorView weights(const Bias& bias) noexcept;
VectorTables vectors(const Bias& bias) noexcept;
double vector_scale(const Bias& bias, double scale) noexcept;
/// The bias without what it adds to values.
Bias of_scores(const Bias& bias);

/// What is added to a score, except for vectors and counts.
double element(const Bias& bias, const Score& at);

/// The gradients of the trained parameters: see Term.
Extents parameters(const Bias& bias) noexcept;
std::int64_t head_parameters(const Bias& bias) noexcept;
void add_gradient(const Bias& bias, const Score& at, double ds, double* sums);
double gradient(const Bias& bias, const double* sums, std::int64_t index);

/// Whether the kind is one of these: an engine names those it has a kernel for, and rejects all others by name.
template <class... Kinds> bool is_one_of(const Bias& bias) noexcept {
  return (std::holds_alternative<Kinds>(bias.source) || ...);
}

}  // namespace posenc::terms
