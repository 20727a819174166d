#pragma once

#include <string>

#include "cli/arrays/table_stream.h"
#include "cli/flags/positions_argument.h"
#include "posenc/forms.h"
#include "posenc/scheme.h"

namespace posenc::cli {

/// A table [heads, queries, keys] yet to be computed.
struct BiasTableJob {
  Scheme scheme;
  Bias form;
  PositionList queries, keys;
  DataType type = DataType::kF32;
};

/// Throws: Failure for a bias that cannot be computed without q and k.
void refuse_vectors(const Scheme& scheme);
/// The length that the job's positions need, for schemes that are prepared for one.
std::int64_t length_of(const BiasTableJob& job);
Extents shape_of(const BiasTableJob& job);

/// Throws: Failure if the table is larger than `limit` bytes or the positions have other axes than the form, and
/// Error if two of them are further apart than it covers.
void check_bias_job(const BiasTableJob& job, TableFormat format, std::int64_t limit);

/// One plane per head. Refers to the job, which must outlive it.
TableSource source_of(const BiasTableJob& job);

/// The table as text for people: one grid per head, queries in rows and keys in columns.
std::string bias_table_text(const BiasTableJob& job, int digits, int columns, bool colour);

}  // namespace posenc::cli
