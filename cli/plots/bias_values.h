#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/plots/kinds.h"
#include "posenc/forms.h"

namespace posenc::cli {

/// A bias that can be asked for numbers. T5 without its trained table gives the numbers of its buckets.
struct BiasValues {
  Bias form = {};
  bool is_buckets = false;
};

bool is_bias_scheme(const Scheme& scheme);

/// For positions below `length`. Throws: Failure where the scheme is no bias, or one that needs q and k, or one with
/// positions of several axes.
BiasValues bias_values(const PlottedScheme& scheme, const PlotRequest& request, std::int64_t length);

/// [heads, queries, keys] for these positions.
std::vector<double> bias_between(const BiasValues& bias, const std::vector<std::int64_t>& queries,
                                 const std::vector<std::int64_t>& keys);

/// For each head, the bias of keys that stand these distances before the query.
std::vector<std::vector<double>> bias_by_distance(const BiasValues& bias, const WholeRange& distances);

/// The scheme's name, with the fields that were given where another has the same name.
std::string label_of(const PlottedScheme& scheme, const std::vector<PlottedScheme>& all);

}  // namespace posenc::cli
