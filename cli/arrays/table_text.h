#pragma once

#include <string>

#include "cli/arrays/table_stream.h"

namespace posenc::cli {

/// The table as text for people: a column of positions, a header of column numbers, aligned values. If it is longer
/// or wider than a screen, the middle is replaced by "…" and never computed.
std::string table_text(const TableJob& job, int digits, int columns, bool colour);

}  // namespace posenc::cli
