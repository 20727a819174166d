#include "cli/pages/completions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

#include "posenc/content.h"

namespace posenc::cli {
namespace {

// Text in a shell's single quotes.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      result += "'\\''";
    } else {
      result += letter == '\n' ? ' ' : letter;
    }
  }
  return result + "'";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string names_of(const std::vector<FlagRow>& rows) {
  std::string names;
  for (const FlagRow& row : rows) {
    for (const std::string& name : row.names) {
      // a_b is completed as a-b
      if (!name.starts_with("--") || name.find('_') != std::string::npos) continue;
      names += fmt::format("{}{}", names.empty() ? "" : " ", name);
    }
  }
  return names;
}

template <class Row> std::string names_of(const std::vector<Row>& rows) {
  std::string names;
  for (const Row& row : rows) names += fmt::format("{}{}", names.empty() ? "" : " ", row.name);
  return names;
}

// "    verb:--flag) words='a b' ;;" for each flag that has choices.
std::string choice_cases(std::string_view owner, const std::vector<FlagRow>& rows) {
  std::string text;
  for (const FlagRow& row : rows) {
    if (row.values.choices.empty()) continue;
    std::string patterns;
    for (const std::string& name : row.names) {
      patterns += fmt::format("{}{}:{}", patterns.empty() ? "" : "|", owner, name);
    }
    text +=
        fmt::format("    {}) words={} ;;\n", patterns, quoted(fmt::format("{}", fmt::join(row.values.choices, " "))));
  }
  return text;
}

// The part that bash and zsh share: the words that may come next. The caller's script sets `verb`, `scheme` and
// `last`.
std::string word_tables(const CommandTable& table) {
  std::string text = "  case \"$verb\" in\n";
  for (const VerbRow& verb : table.verbs) {
    text += fmt::format("    {}) flags={}; takes_scheme={} ;;\n", verb.name, quoted(names_of(verb.flags)),
                        verb.takes_scheme || verb.name == "list" ? 1 : 0);
  }
  text += "  esac\n  case \"$scheme\" in\n";
  for (const SchemeRow& scheme : table.schemes) {
    text += fmt::format("    {}) fields={} ;;\n", scheme.name, quoted(names_of(scheme.fields)));
  }
  text += "  esac\n  case \"$verb:$last\" in\n";
  for (const VerbRow& verb : table.verbs) text += choice_cases(verb.name, verb.flags);
  text += "  esac\n  case \"$scheme:$last\" in\n";
  for (const SchemeRow& scheme : table.schemes) text += choice_cases(scheme.name, scheme.fields);
  return text + "  esac\n";
}

std::string filled_in(std::string_view script, const CommandTable& table) {
  std::string text(script);
  for (const auto& [mark, value] :
       {std::pair{"@SCHEMES@", quoted(names_of(table.schemes))}, std::pair{"@TABLES@\n", word_tables(table)},
        std::pair{"@VERBS@", quoted(names_of(table.verbs) + " help --help --version --color")}}) {
    text.replace(text.find(mark), std::string_view(mark).size(), value);
  }
  return text;
}

}  // namespace

std::string bash_completion(const CommandTable& table) { return filled_in(content("pages/completion.bash"), table); }

// When zsh loads the file from $fpath, the file itself is the body of the function, and must complete that first time,
// too: its last line.
std::string zsh_completion(const CommandTable& table) { return filled_in(content("pages/completion.zsh"), table); }

std::string fish_completion(const CommandTable& table) {
  std::string text =
      "# fish completion of posenc; made by: posenc help --fish\n"
      "complete -c posenc -n __fish_use_subcommand -f\n";
  const auto flag_lines = [&](const std::string& condition, const std::vector<FlagRow>& rows) {
    for (const FlagRow& row : rows) {
      for (const std::string& name : row.names) {
        if (!name.starts_with("--") || name.find('_') != std::string::npos) continue;
        text += fmt::format("complete -c posenc -n {} -l {}", quoted(condition), name.substr(2));
        if (!row.values.choices.empty()) {
          text += fmt::format(" -x -a {}", quoted(fmt::format("{}", fmt::join(row.values.choices, " "))));
        } else if (!row.metavar.empty()) {
          text += " -r";
        }
        text += fmt::format(" -d {}\n", quoted(first_line(row.help)));
      }
    }
  };
  for (const VerbRow& verb : table.verbs) {
    text += fmt::format("complete -c posenc -n __fish_use_subcommand -a {} -d {}\n", verb.name, quoted(verb.summary));
  }
  for (const VerbRow& verb : table.verbs) {
    const std::string seen = fmt::format("__fish_seen_subcommand_from {}", verb.name);
    if (verb.takes_scheme || verb.name == "list") {
      text += fmt::format("complete -c posenc -n {} -a {}\n", quoted(seen), quoted(names_of(table.schemes)));
    }
    flag_lines(seen, verb.flags);
  }
  for (const SchemeRow& scheme : table.schemes) {
    flag_lines(fmt::format("__fish_seen_subcommand_from {}", scheme.name), scheme.fields);
  }
  return text;
}

}  // namespace posenc::cli
