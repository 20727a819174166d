#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/figures.h"
#include "posenc/forms.h"

namespace posenc::figures {

/// A bias that can be asked for numbers. Without its trained table it gives the row that it reads (T5: the bucket).
struct BiasValues {
  Bias form = {};
  std::string row_name = {};   // "bucket"; empty: the numbers are those that are added
  bool is_of_vectors = false;  // which meet a query of ones; the key is 0
  bool is_of_tokens = false;   // it reads the tokens between key and query: those of an example
  std::string note = {};       // which example
  SharedNumbers numbers = {};  // the table that stands in for a trained one, where the form reads it
  std::int64_t heads() const { return form.heads > 0 ? form.heads : 1; }
  bool is_numbered() const { return !row_name.empty(); }
};

/// For positions below `length`. Throws: Error where the scheme is no bias, or one with positions of several axes.
BiasValues bias_values(const PlottedScheme& scheme, const Request& request, std::int64_t length);

/// [heads, queries, keys] for these positions.
std::vector<double> bias_between(const BiasValues& bias, const std::vector<std::int64_t>& queries,
                                 const std::vector<std::int64_t>& keys);

/// For each head, the bias of keys that stand these distances before the query.
std::vector<std::vector<double>> bias_by_distance(const BiasValues& bias, const Range& distances);

/// The scheme's name, with the fields that tell it from others of that name.
std::string label_of(const PlottedScheme& scheme, const std::vector<PlottedScheme>& all);

}  // namespace posenc::figures
