#pragma once

#include <string>

#include "cli/arrays/table_stream.h"

namespace posenc::cli {

/// The table as people read it: a column of positions, a header of column numbers, values aligned. Where it is
/// longer or wider than a screen, the middle is left out with "…" and never computed.
std::string table_text(const TableJob& job, int digits, int columns, bool colour);

}  // namespace posenc::cli
