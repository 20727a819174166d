#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/command.h"
#include "cli/flags/help.h"
#include "cli/flags/scheme_flags.h"

namespace posenc::cli {

// Each adds its command to the program and defines how to run it. One verb, one file.
Verb tour_verb(Command program);
Verb explain_verb(Command program);
Verb list_verb(Command program);
Verb table_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme);
Verb apply_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme);
Verb attend_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme);
Verb bench_verb(Command program);
Verb inspect_verb(Command program);
Verb positions_verb(Command program);
Verb convert_verb(Command program);
Verb diagnose_verb(Command program);
Verb compare_verb(Command program);
Verb check_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme);
Verb prove_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme);
Verb plot_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme,
               const std::shared_ptr<std::vector<SchemeRequest>>& further);
Verb practice_verb(Command program);
Verb cards_verb(Command program);
Verb explore_verb(Command program);
Verb lab_verb(Command program);

/// Every verb, in the order of the overview. If `first_word` is a verb, only that one: declaring the flags of all
/// takes most of the startup time.
std::vector<Verb> make_verbs(Command program, const std::shared_ptr<SchemeRequest>& scheme,
                             const std::shared_ptr<std::vector<SchemeRequest>>& further, std::string_view first_word);

/// Removes all schemes but the first from the arguments of a verb that shows several (plot), with the flags of their
/// fields. Throws: Failure, as for the flags of one scheme.
std::vector<SchemeRequest> take_further_schemes(std::vector<std::string>& arguments);

/// Throws: Failure if a verb that needs a scheme has none: unknown, with a suggestion, or missing.
void require_scheme(const Verb& verb, const SchemeRequest& scheme, const std::string& first_word);

/// Throws: Failure for the first unused argument, with a suggestion if a flag is similar.
void refuse_leftovers(const Command& command);

}  // namespace posenc::cli
