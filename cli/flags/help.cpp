#include "cli/flags/help.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/system/terminal.h"
#include "posenc/scheme.h"
#include "posenc/version.h"

namespace posenc::cli {
namespace {

constexpr int kMostColumns = 100;

struct Entry {
  std::string left;
  std::string right;
};

int page_columns() { return std::min(output_columns(), kMostColumns); }

std::string heading(std::string_view text) { return bold(text, wants_colour(STDOUT_FILENO)); }

std::string paragraph(std::string_view text) {
  return fmt::format("{}\n", fmt::join(wrap(text, page_columns()), "\n"));
}

// Two columns: names, and their meanings, wrapped within the second.
std::string entries(const std::vector<Entry>& list) {
  int left_columns = 0;
  for (const Entry& entry : list) left_columns = std::max(left_columns, columns_of(entry.left));
  const int indent = 2 + left_columns + 2;
  std::string text;
  for (const Entry& entry : list) {
    std::string left = entry.left;
    for (const std::string& line : wrap(entry.right, page_columns() - indent)) {
      text += fmt::format("  {}  {}\n", pad_right(left, left_columns), line);
      left.clear();
    }
  }
  return text;
}

std::string options_of(const Command& command) {
  std::vector<Entry> list;
  for (const Flag& option : command.options()) {
    if (option.long_names().empty()) continue;
    const std::string letter = option.short_names().empty() ? "    " : fmt::format("-{}, ", option.short_names()[0]);
    list.push_back({letter + option.spelled(), option.description()});
  }
  // --help is defined first, but belongs at the end of the list
  if (!list.empty()) std::rotate(list.begin(), list.begin() + 1, list.end());
  return entries(list);
}

std::string examples_of(std::string_view examples) {
  std::string text = heading("Examples:") + "\n";
  for (const std::string& line : wrap(examples, 1 << 20)) text += fmt::format("  {}\n", line);
  return text;
}

bool has_schemes(const Verb& verb) { return verb.command.has_subcommands(); }

}  // namespace

std::string overview(const std::vector<Verb>& verbs) {
  std::vector<Entry> list;
  for (const Verb& verb : verbs) list.push_back({std::string(verb.name), std::string(verb.summary)});
  return fmt::format(
      "{} {}\nPositional encodings for Transformers: exact, fast, explained.\n\n"
      "{} posenc COMMAND ...\n\n"
      "{}\n{}\n"
      "{}\n{}\n"
      "{}",
      heading("posenc"), POSENC_VERSION, heading("Usage:"), heading("Commands:"), entries(list), heading("More:"),
      entries({{"posenc COMMAND --help", "show what it does, its options and examples"},
               {"posenc table SCHEME --help", "show the fields of a scheme"},
               {"posenc list SCHEME", "a page on a scheme: formula, paper, fields, pitfalls"},
               {"posenc help --json", "every command, option and field, as data"},
               {"posenc help --man", "the manual page; --bash, --zsh and --fish: completions"},
               {"posenc ... --color WHEN", "colour: auto, always or never"},
               {"posenc --version", "show the version"}}),
      examples_of("posenc tour\n"
                  "posenc table sinusoidal --width 4 --positions 0:4\n"
                  "posenc table sinusoidal --width 512 --positions 0:4096 -o pe.npy\n"
                  "posenc apply sinusoidal x.npy -o y.npy"));
}

std::string help_of(const Verb& verb) {
  std::string text = fmt::format("{}: {}\n\n", heading(fmt::format("{} {}", verb.program, verb.name)), verb.summary);
  text += fmt::format("{} {} {}{}{}\n\n", heading("Usage:"), verb.program, verb.name, verb.usage.empty() ? "" : " ",
                      verb.usage);
  if (!verb.details.empty()) text += paragraph(verb.details) + "\n";
  if (has_schemes(verb)) {
    text += heading("Schemes:") + "\n";
    for (const std::string& line : wrap(fmt::format("{}", fmt::join(scheme_names(), ", ")), page_columns() - 2)) {
      text += fmt::format("  {}\n", line);
    }
    text += fmt::format("  posenc {} SCHEME --help lists the fields of a scheme.\n\n", verb.name);
  }
  text += fmt::format("{}\n{}\n", heading("Options:"), options_of(verb.command));
  return text + examples_of(verb.examples);
}

std::string help_of(const Verb& verb, const Command& scheme_command) {
  const std::string& scheme = scheme_command.name();
  std::string usage(verb.usage);
  if (const std::size_t at = usage.find("SCHEME"); at != std::string::npos) usage.replace(at, 6, scheme);

  std::vector<Entry> fields;
  for (const Flag& option : scheme_command.options()) {
    if (option.group() == kFieldGroup) fields.push_back({option.spelled(), option.description()});
  }
  const std::string title = fmt::format("posenc {} {}", verb.name, scheme);
  std::string text = fmt::format("{}: {}", title, scheme_command.description());
  // styled after wrapping, because styles take no columns
  text = heading(title) + paragraph(text).substr(title.size()) + "\n";
  text += fmt::format("{} posenc {} {}\n\n", heading("Usage:"), verb.name, usage);
  text += fmt::format("{}\n{}\n", heading(fmt::format("Fields of {}:", scheme)),
                      fields.empty() ? "  it has none\n" : entries(fields));
  return text + fmt::format("{}\n{}", heading(fmt::format("Options of {}:", verb.name)), options_of(verb.command));
}

}  // namespace posenc::cli
