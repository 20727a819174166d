#pragma once

#include "cli/system/descriptor.h"

namespace posenc::cli {

/// What standard input holds, all of it, as a file in memory that can be read anywhere: where a path is "-".
/// Throws: Failure where it is a terminal, was read before, or cannot be read.
Descriptor standard_input_as_file();

}  // namespace posenc::cli
