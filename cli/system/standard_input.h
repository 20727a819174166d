#pragma once

#include "cli/system/descriptor.h"

namespace posenc::cli {

/// All of standard input, as a file in memory with random access; used if a path is "-".
/// Throws: Failure if it is a terminal, was read before, or cannot be read.
Descriptor standard_input_as_file();

}  // namespace posenc::cli
