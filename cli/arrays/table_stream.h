#pragma once

#include "cli/arrays/table_writer.h"
#include "posenc/forms.h"
#include "posenc/scheme.h"

namespace posenc::cli {

/// A table [positions, width] yet to be computed.
struct TableJob {
  Scheme scheme;
  Addition form;
  PositionList positions;
  DataType type = DataType::kF32;
};

/// Refers to the job, which must outlive it.
TableSource source_of(const TableJob& job);

}  // namespace posenc::cli
