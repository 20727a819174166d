#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/help.h"
#include "cli/scheme_flags.h"

namespace posenc::cli {

// Each adds its command to the program and says how to run it. One verb, one file.
Verb tour_verb(CLI::App& program);
Verb explain_verb(CLI::App& program);
Verb list_verb(CLI::App& program);
Verb table_verb(CLI::App& program, const std::shared_ptr<SchemeRequest>& scheme);
Verb apply_verb(CLI::App& program, const std::shared_ptr<SchemeRequest>& scheme);
Verb attend_verb(CLI::App& program, const std::shared_ptr<SchemeRequest>& scheme);
Verb bench_verb(CLI::App& program);
Verb inspect_verb(CLI::App& program);
Verb positions_verb(CLI::App& program);
Verb convert_verb(CLI::App& program);
Verb diagnose_verb(CLI::App& program);
Verb compare_verb(CLI::App& program);
Verb check_verb(CLI::App& program, const std::shared_ptr<SchemeRequest>& scheme);
Verb prove_verb(CLI::App& program, const std::shared_ptr<SchemeRequest>& scheme);
Verb plot_verb(CLI::App& program, const std::shared_ptr<SchemeRequest>& scheme,
               const std::shared_ptr<std::vector<SchemeRequest>>& further);
Verb practice_verb(CLI::App& program);
Verb cards_verb(CLI::App& program);

/// Takes all schemes but the first out of the arguments of a verb that shows several (plot), with the flags of their
/// fields. Throws: Failure as the flags of one scheme do.
std::vector<SchemeRequest> take_further_schemes(std::vector<std::string>& arguments);

/// Throws: Failure where a verb that needs a scheme has none: unknown, with a suggestion, or missing.
void require_scheme(const Verb& verb, const SchemeRequest& scheme, const std::string& first_word);

/// Throws: Failure for the first argument that nobody wanted, with a suggestion where a flag is near.
void refuse_leftovers(const CLI::App& command);

}  // namespace posenc::cli
