#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "posenc/scheme.h"
#include "posenc/story.h"

namespace posenc::lessons {

// The arithmetic of worked examples, in double. Positions and attention are computed by the library; only what a
// reader does on paper, products and differences of rows, is written out here.

/// The name of a matrix, and the labels of its rows and columns.
struct MatrixLabels {
  std::string name, caption;
  std::vector<std::string> rows, columns;
};

StoryMatrix given(MatrixLabels labels, std::vector<double> values);
/// Each cell has its terms, and their result is its value.
StoryMatrix computed(MatrixLabels labels, std::vector<CellTerms> cells);
/// Each cell has its terms, and a value computed by the library, which equals their result up to rounding.
StoryMatrix computed(MatrixLabels labels, std::vector<double> values, std::vector<CellTerms> cells);
/// function(Σ of products) / divisor.
double value_of(const CellTerms& cell);

/// "P[4, d0]" with its value.
CellFactor cell_factor(const StoryMatrix& matrix, std::size_t row, std::size_t column);
/// The dot product of a row of `a` and a row of `b`.
CellTerms row_product(const StoryMatrix& a, std::size_t row, const StoryMatrix& b, std::size_t other);
/// ‖row − other‖ of two rows of one matrix.
CellTerms row_distance_terms(const StoryMatrix& matrix, std::size_t row, std::size_t other);
/// max |a − b| over the cells, with the terms of the cell where it is largest.
CellTerms largest_difference_terms(const StoryMatrix& a, const StoryMatrix& b);
/// max − min of a column, and of the column where that is largest.
double spread_of_column(const StoryMatrix& matrix, std::size_t column);
double largest_spread(const StoryMatrix& matrix);
/// A constant without terms.
CellTerms constant(std::string why);

/// "d0", "d1" …
std::vector<std::string> numbered(std::string_view letter, std::size_t count);
std::vector<std::string> as_labels(std::span<const std::int64_t> numbers);

/// Rows of the sinusoidal table at these positions.
StoryMatrix waves(MatrixLabels labels, const Sinusoidal& scheme, std::span<const std::int64_t> positions);
/// Radians per position of each pair.
std::vector<double> frequencies_of(const Sinusoidal& scheme);

/// x plus the scheme's vectors at these positions, computed by the library's add(); `p` is shown as the second term.
StoryMatrix added(MatrixLabels labels, const StoryMatrix& x, const StoryMatrix& p, const Sinusoidal& scheme,
                  std::span<const std::int64_t> positions);

struct ProductOptions {
  bool transposed = false;
  double divisor = 1.0;
  std::string divisor_name = {};
};
/// Left · right, or left · rightᵀ if options.transposed.
StoryMatrix product(std::string name, std::string caption, const StoryMatrix& left, const StoryMatrix& right,
                    const ProductOptions& options = {});

/// Row i of the result is row order[i] of `x`.
StoryMatrix reordered(std::string name, std::string caption, const StoryMatrix& x,
                      std::span<const std::size_t> order);

/// Weights and output of the library's attention over the rows of q, k and v.
struct Attended {
  StoryMatrix weights, output;
};
struct AttendedNames {
  std::string weights, weights_caption, output, output_caption;
};
struct AttendedInputs {
  const StoryMatrix &q, &k, &v;
  const StoryMatrix& scores;  // the product that the weights are computed from
  bool causal = false;
  double divisor = 1.0;  // of the scores, in addition to their own
  std::string divisor_name = {};
};
Attended attended(const AttendedNames& names, const AttendedInputs& inputs);

/// Everything one head computes from x. `mark`, e.g. ', is appended to every name.
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

/// Row i of `x`, or its only row, rotated to positions[i]; pairs are interleaved.
StoryMatrix rotated_to(MatrixLabels labels, const StoryMatrix& x, const Rotation& form,
                       const std::vector<std::int64_t>& positions);

}  // namespace posenc::lessons
