#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "posenc/scheme.h"
#include "posenc/story.h"

namespace posenc::lessons {

// The arithmetic of worked examples, in double. Position and attention are the library's; what is written out here is
// what a reader does on paper: products and differences of rows.

/// What a matrix is called, and what its sides are.
struct MatrixLabels {
  std::string name, caption;
  std::vector<std::string> rows, columns;
};

StoryMatrix given(MatrixLabels labels, std::vector<double> values);
/// Every cell with its own terms; a value is what its terms come to.
StoryMatrix computed(MatrixLabels labels, std::vector<CellTerms> cells);
/// The same, with values that the library computed: they agree with the terms to rounding.
StoryMatrix computed(MatrixLabels labels, std::vector<double> values, std::vector<CellTerms> cells);
/// function(Σ of products) / divisor.
double value_of(const CellTerms& cell);

/// "P[4, d0]" with its value.
CellFactor cell_factor(const StoryMatrix& matrix, std::size_t row, std::size_t column);
/// Row of `a` times row of `b`, feature by feature.
CellTerms row_product(const StoryMatrix& a, std::size_t row, const StoryMatrix& b, std::size_t other);
/// ‖row − other‖ of one matrix.
CellTerms row_distance_terms(const StoryMatrix& matrix, std::size_t row, std::size_t other);
/// max |a − b| over the cells, opened at the cell where it is largest.
CellTerms largest_difference_terms(const StoryMatrix& a, const StoryMatrix& b);
/// A constant, with nothing to open.
CellTerms constant(std::string why);

/// "d0", "d1" …
std::vector<std::string> numbered(std::string_view letter, std::size_t count);
std::vector<std::string> as_labels(std::span<const std::int64_t> numbers);

/// Rows of the sinusoidal table at these positions.
StoryMatrix waves(MatrixLabels labels, const Sinusoidal& scheme, std::span<const std::int64_t> positions);
/// Radians per position of each pair.
std::vector<double> frequencies_of(const Sinusoidal& scheme);

/// x + what the scheme adds at these positions, by the library's add(); `p` is shown as the second term.
StoryMatrix added(MatrixLabels labels, const StoryMatrix& x, const StoryMatrix& p, const Sinusoidal& scheme,
                  std::span<const std::int64_t> positions);

struct ProductOptions {
  bool transposed = false;
  double divisor = 1.0;
  std::string divisor_name = {};
};
/// Columns are those of `right`, or its rows where it is transposed.
StoryMatrix product(std::string name, std::string caption, const StoryMatrix& left, const StoryMatrix& right,
                    const ProductOptions& options = {});

/// The same rows in another order: row i is row order[i] of `x`.
StoryMatrix reordered(std::string name, std::string caption, const StoryMatrix& x,
                      std::span<const std::size_t> order);

/// The library's attention over the rows of q, k and v.
struct Attended {
  StoryMatrix weights, output;
};
struct AttendedNames {
  std::string weights, weights_caption, output, output_caption;
};
struct AttendedInputs {
  const StoryMatrix &q, &k, &v;
  const StoryMatrix& scores;  // a product, which the weights are made from
  bool causal = false;
  double divisor = 1.0;  // of the scores, beside the one they have
  std::string divisor_name = {};
};
Attended attended(const AttendedNames& names, const AttendedInputs& inputs);

/// Everything one head computes from x; every name carries the mark, such as ' for X'.
struct Projections {
  StoryMatrix q, k, v;
};
struct Stages {
  StoryMatrix q, k, v, scores, weights, output;
};
Stages stages_of(const StoryMatrix& x, std::string_view mark, const Projections& weights);

/// [rows, columns].
Extents shape_of(const StoryMatrix& matrix);
/// ‖row − other‖.
double row_distance(const StoryMatrix& matrix, std::size_t row, std::size_t other);
/// max |a − b| over the cells.
double largest_difference(const StoryMatrix& a, const StoryMatrix& b);
double dot(std::span<const double> a, std::span<const double> b);
std::span<const double> row_of(const StoryMatrix& matrix, std::size_t row);

/// Row i of `x`, or its one row, rotated to positions[i]; pairs are interleaved.
StoryMatrix rotated_to(MatrixLabels labels, const StoryMatrix& x, const Rotation& form,
                       const std::vector<std::int64_t>& positions);

}  // namespace posenc::lessons
