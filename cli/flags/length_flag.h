#pragma once

#include <cstdint>
#include <optional>

#include "cli/flags/command.h"
#include "posenc/scheme.h"

namespace posenc::cli {

/// --length: the sequence length, for schemes that depend on it.
void add_length_flag(Command verb, std::optional<std::int64_t>& length);

/// The length, or 0 if not given. Throws: Failure if a scheme needs one and has none.
std::int64_t length_for(const Scheme& scheme, std::optional<std::int64_t> length);

}  // namespace posenc::cli
