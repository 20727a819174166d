#pragma once

#include <cstdint>
#include <string>

#include "cli/system/descriptor.h"

namespace posenc::cli {

/// Opens a regular file for random access and sets its size. "-" is all of standard input, as a file in memory.
/// Throws: Failure for everything else, and if standard input is a terminal, was read before, or cannot be read.
Descriptor open_regular(const std::string& path, std::int64_t& size);

/// The next bytes of a file, at most so many. Throws: Failure that begins with the path.
std::string read_up_to(const Descriptor& file, std::int64_t count, const std::string& path);

bool is_there(const std::string& path);

}  // namespace posenc::cli
