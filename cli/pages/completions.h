#pragma once

#include <string>

#include "cli/verbs/command_table.h"

namespace posenc::cli {

// Scripts that complete verbs, schemes, flags and their choices, generated from the table of commands.
std::string bash_completion(const CommandTable& table);
std::string zsh_completion(const CommandTable& table);
std::string fish_completion(const CommandTable& table);

/// The manual page posenc(1).
std::string manual_page(const CommandTable& table);

}  // namespace posenc::cli
