#include "cli/pages/completions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

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

}  // namespace

std::string bash_completion(const CommandTable& table) {
  return fmt::format(
      "# bash completion of posenc; made by: posenc help --bash\n"
      "_posenc() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} last=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  local verb= scheme= flags= fields= words= takes_scheme=0 word\n"
      "  local schemes={}\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    if [[ -z $verb ]]; then [[ $word == -* ]] || verb=$word\n"
      "    elif [[ -z $scheme && \" $schemes \" == *\" $word \"* ]]; then scheme=$word; fi\n"
      "  done\n"
      "{}"
      "  COMPREPLY=()\n"
      "  if [[ -n $words ]]; then :\n"
      "  elif [[ -z $verb ]]; then words={}\n"
      "  elif [[ $current == -* ]]; then words=\"$fields $flags --help\"\n"
      "  elif [[ $takes_scheme == 1 && -z $scheme && $last != -* ]]; then words=$schemes\n"
      "  else return; fi\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
      "}}\n"
      "complete -o default -F _posenc posenc\n",
      quoted(names_of(table.schemes)), word_tables(table),
      quoted(names_of(table.verbs) + " help --help --version --color"));
}

std::string zsh_completion(const CommandTable& table) {
  return fmt::format(
      "#compdef posenc\n"
      "# zsh completion of posenc; made by: posenc help --zsh\n"
      "_posenc() {{\n"
      "  local current=${{words[CURRENT]}} last=${{words[CURRENT-1]}} candidates=\n"
      "  local verb= scheme= flags= fields= takes_scheme=0 word\n"
      "  local schemes={}\n"
      "  for word in ${{words[2,CURRENT-1]}}; do\n"
      "    if [[ -z $verb ]]; then [[ $word == -* ]] || verb=$word\n"
      "    elif [[ -z $scheme && \" $schemes \" == *\" $word \"* ]]; then scheme=$word; fi\n"
      "  done\n"
      "  () {{\n"
      "  local words=\n"
      "{}"
      "  candidates=$words\n"
      "  }}\n"
      "  if [[ -n $candidates ]]; then :\n"
      "  elif [[ -z $verb ]]; then candidates={}\n"
      "  elif [[ $current == -* ]]; then candidates=\"$fields $flags --help\"\n"
      "  elif [[ $takes_scheme == 1 && -z $scheme && $last != -* ]]; then candidates=$schemes\n"
      "  else _files; return; fi\n"
      "  compadd -- ${{=candidates}}\n"
      "  [[ $current == -* || -z $verb ]] || _files\n"
      "}}\n"
      // When zsh loads the file from $fpath, the file itself is the body of the function, and must complete that
      // first time, too.
      "if [[ $funcstack[1] == _posenc ]]; then _posenc \"$@\"; else compdef _posenc posenc; fi\n",
      quoted(names_of(table.schemes)), word_tables(table),
      quoted(names_of(table.verbs) + " help --help --version --color"));
}

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
