#pragma once

#include <string>

#include "cli/arrays/table_stream.h"
#include "cli/flags/positions_argument.h"
#include "posenc/forms.h"
#include "posenc/scheme.h"

namespace posenc::cli {

/// A table [heads, queries, keys] that is still to be made.
struct BiasTableJob {
  Scheme scheme;
  Bias form;
  PositionList queries, keys;
  DataType type = DataType::kF32;
};

/// Throws: Failure for a bias that has no numbers without q and k.
void refuse_vectors(const Scheme& scheme);
/// The length that the job's positions need, for schemes that are made for one.
std::int64_t length_of(const BiasTableJob& job);
Extents shape_of(const BiasTableJob& job);

/// Throws: Failure where the table is larger than `limit` bytes or the positions have other axes than the form, and
/// Error where two of them lie further apart than it reaches.
void check_bias_job(const BiasTableJob& job, TableFormat format, std::int64_t limit);

/// One plane for each head. It looks at the job, which must outlive it.
TableSource source_of(const BiasTableJob& job);

/// The table as people read it: one grid for each head, queries down and keys across.
std::string bias_table_text(const BiasTableJob& job, int digits, int columns, bool colour);

}  // namespace posenc::cli
