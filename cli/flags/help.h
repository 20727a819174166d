#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/command.h"

namespace posenc::cli {

/// The group of a scheme command's own flags; all others belong to the verb.
inline constexpr std::string_view kFieldGroup = "Fields";

/// A verb: its help, its command in the parser, and its function.
struct Verb {
  std::string_view name;
  std::string_view summary;   // one line, for the overview
  std::string_view usage;     // what follows "posenc NAME"
  std::string_view details;   // a paragraph
  std::string_view examples;  // one per line
  Command command;
  std::function<int()> run;             // returns the exit status
  bool checks_words = false;            // run() itself refuses words that nothing has taken
  std::string_view program = "posenc";  // what is typed before the name
};

/// What `posenc` alone prints.
std::string overview(const std::vector<Verb>& verbs);
/// `posenc VERB --help`.
std::string help_of(const Verb& verb);
/// `posenc VERB SCHEME --help`: the scheme's fields first.
std::string help_of(const Verb& verb, const Command& scheme_command);

}  // namespace posenc::cli
