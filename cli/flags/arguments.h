#pragma once

#include <string>
#include <vector>

#include "cli/flags/command.h"
#include "cli/flags/help.h"
#include "cli/flags/scheme_flags.h"

namespace posenc::cli {

/// Removes all schemes but the first from the arguments of a verb that shows several (plot), with the flags of their
/// fields. Throws: Failure, as for the flags of one scheme.
std::vector<SchemeRequest> take_further_schemes(std::vector<std::string>& arguments);

/// Throws: Failure if a verb that needs a scheme has none: unknown, with a suggestion, or missing.
void require_scheme(const Verb& verb, const SchemeRequest& scheme, const std::string& first_word);

/// Throws: Failure for the first unused argument, with a suggestion if a flag is similar.
void refuse_leftovers(const Command& command);

}  // namespace posenc::cli
