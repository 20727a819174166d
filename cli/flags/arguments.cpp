#include "cli/flags/arguments.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "cli/system/failure.h"

namespace posenc::cli {
namespace {

void collect_flags(const Command& command, std::vector<std::string>& flags) {
  for (const Flag& option : command.options()) {
    for (const std::string& name : option.long_names()) flags.push_back("--" + name);
  }
}

}  // namespace

void require_scheme(const Verb& verb, const SchemeRequest& scheme, const std::string& first_word) {
  if (scheme.is_chosen) return;
  const std::string& word = first_word;
  // the library knows the names and the closest one
  if (!word.empty() && !word.starts_with('-')) scheme_named(word);
  refuse(fmt::format("{}: the scheme is missing (one of {})", verb.name, fmt::join(scheme_names(), ", ")));
}

void refuse_leftovers(const Command& command) {
  const std::vector<std::string> leftovers = command.remaining();
  if (leftovers.empty()) return;
  const std::string& text = leftovers.front();
  if (!text.starts_with('-') || text == "-") {
    refuse(fmt::format("{}: unexpected argument '{}'", command.name(), text));
  }
  std::vector<std::string> flags;
  collect_flags(command, flags);
  for (const Command& chosen : command.chosen_subcommands()) collect_flags(chosen, flags);
  const std::string flag = text.substr(0, text.find('='));
  const std::string_view near = nearest_name(flag, {flags.begin(), flags.end()});
  const std::string hint = near.empty() ? "--help lists the options" : fmt::format("did you mean {}?", near);
  refuse(fmt::format("{}: unknown option {} ({})", command.name(), flag, hint));
}

}  // namespace posenc::cli
