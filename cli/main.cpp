// posenc VERB …: finds the verb and runs it.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/colour_flag.h"
#include "cli/pages/completions.h"
#include "cli/system/failure.h"
#include "cli/system/run_main.h"
#include "cli/system/streams.h"
#include "cli/verbs/command_table.h"
#include "cli/verbs/verbs.h"
#include "posenc/version.h"

namespace posenc::cli {
namespace {

std::string help_text(const std::vector<Verb>& verbs) {
  for (const Verb& verb : verbs) {
    if (!verb.command.is_chosen()) continue;
    const std::vector<Command> schemes = verb.command.chosen_subcommands();
    return schemes.empty() ? help_of(verb) : help_of(verb, schemes.front());
  }
  return overview(verbs);
}

[[noreturn]] void refuse_verb(const std::string& word, const std::vector<Verb>& verbs) {
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs) names.push_back(verb.name);
  const std::string_view kind = word.starts_with('-') ? "option" : "command";
  refuse(fmt::format("unknown {} '{}' ({})", kind, word, suggestion(word, names)));
}

// posenc help table → posenc table --help
void accept_help_as_verb(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "help") return;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
}

// posenc help --json, --bash, --zsh, --fish, --man: the table of commands in other forms. "" for anything else.
std::string table_of_commands(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2 || arguments.front() != "help") return {};
  const std::string& form = arguments.back();
  if (form == "--json") return dump_json(to_json(command_table()), 2) + "\n";
  if (form == "--bash") return bash_completion(command_table());
  if (form == "--zsh") return zsh_completion(command_table());
  if (form == "--fish") return fish_completion(command_table());
  return form == "--man" ? manual_page(command_table()) : std::string();
}

int run(std::vector<std::string> arguments) {
  take_colour(arguments);
  if (const std::string text = table_of_commands(arguments); !text.empty()) {
    print(text);
    return kDone;
  }
  accept_help_as_verb(arguments);
  if (!arguments.empty() && arguments.front() == "bench") {
    refuse("unknown command 'bench' (in posenc's source tree, ./run bench measures speed)");
  }
  accept_other_names(arguments);
  const auto further = std::make_shared<std::vector<SchemeRequest>>(take_further_schemes(arguments));
  const auto scheme = std::make_shared<SchemeRequest>(take_json_scheme(arguments));
  Parser parser("posenc", "-h,--help");
  Command program = parser.program();
  bool wants_version = false;
  program.add_flag("--version", wants_version);
  // unknown words are rejected below, with a better message
  program.allow_extras();
  program.require_at_most_one();
  const std::vector<Verb> verbs =
      make_verbs(program, scheme, further, arguments.empty() ? std::string_view() : arguments.front());
  if (!parser.parse(arguments)) {
    print(help_text(verbs));
    return kDone;
  }
  if (wants_version) {
    print("posenc " POSENC_VERSION "\n");
    return kDone;
  }
  for (const Verb& verb : verbs) {
    if (!verb.command.is_chosen()) continue;
    if (!verb.checks_words) refuse_leftovers(verb.command);
    return verb.run();
  }
  if (!arguments.empty()) refuse_verb(arguments.front(), verbs);
  print(overview(verbs));
  return kDone;
}

}  // namespace
}  // namespace posenc::cli

int main(int count, char** words) { return posenc::cli::run_main(count, words, posenc::cli::run); }
