#pragma once

#include <cstdint>
#include <string>

#include "cli/flags/command.h"
#include "posenc/scheme.h"

namespace posenc::cli {

/// --length: how long the sequence is, for schemes that depend on it.
void add_length_flag(Command verb, std::string& length);

/// The length, or 0 where none is said.
/// Throws: Failure for a length below 1, and where a scheme needs one and has none.
std::int64_t length_from(const std::string& text, const Scheme& scheme);

}  // namespace posenc::cli
