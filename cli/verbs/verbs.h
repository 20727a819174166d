#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/arguments.h"
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

}  // namespace posenc::cli
