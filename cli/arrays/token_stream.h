#pragma once

#include <cstdint>
#include <string>

#include "cli/arrays/input_array.h"
#include "cli/arrays/table_stream.h"
#include "cli/flags/positions_argument.h"
#include "posenc/forms.h"

namespace posenc::cli {

/// A tensor as a form sees it: `batch` sequences of `sequence` tokens.
struct Tokens {
  std::int64_t batch = 1;
  std::int64_t sequence = 0;
  std::int64_t width = 0;
  std::int64_t row_bytes = 0;
};

/// `axes`: sd, bsd, or empty if the number of axes determines it.
/// Throws: Failure if the array has other axes, or is not floating-point.
Tokens tokens_of(const InputArray& input, const std::string& axes);

/// Reads x, adds, and writes the elements, in pieces. `positions` has one for each token of a sequence, or of the
/// whole batch.
void add_in_pieces(const InputArray& input, const Tokens& x, const Addition& form, const PositionList& positions,
                   const ByteSink& sink, bool with_progress);

/// Reads the elements and writes them unchanged.
void copy_in_pieces(const InputArray& input, const ByteSink& sink);

}  // namespace posenc::cli
