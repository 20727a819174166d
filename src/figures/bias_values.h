#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/figures.h"
#include "posenc/forms.h"

namespace posenc::figures {

/// A bias whose values can be evaluated. Without its trained table, the value is the index of the row that is read
/// (T5: the bucket).
struct BiasValues {
  Bias form = {};
  std::string row_name = {};          // "bucket"; empty: the values are the bias itself
  bool is_of_vectors = false;         // relative-position vectors: the query is all ones, the key all zeros
  bool is_of_tokens = false;          // depends on the tokens between key and query: those of an example
  std::string note = {};              // describes the example
  Boxed<SharedNumbers> numbers = {};  // replaces a trained table that is not given
  std::int64_t heads() const { return form.heads > 0 ? form.heads : 1; }
  bool is_numbered() const { return !row_name.empty(); }
};

/// Supports positions below `length`. Throws: Error if the scheme is not a bias, or has positions of several axes.
BiasValues bias_values(const PlottedScheme& scheme, const Request& request, std::int64_t length);

/// [heads, queries, keys].
std::vector<double> bias_between(const BiasValues& bias, const std::vector<std::int64_t>& queries,
                                 const std::vector<std::int64_t>& keys);

/// The bias of each head at each distance from the query back to the key.
std::vector<std::vector<double>> bias_by_distance(const BiasValues& bias, const Range& distances);

/// The scheme's name, followed by the fields in which schemes of that name in `all` differ.
std::string label_of(const PlottedScheme& scheme, const std::vector<PlottedScheme>& all);

}  // namespace posenc::figures
