// posenc(1) in roff, generated from the table of commands.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "cli/pages/completions.h"
#include "posenc/version.h"

namespace posenc::cli {
namespace {

// Escapes text for roff.
std::string roff(std::string_view text) {
  std::string result;
  bool is_line_start = true;
  for (const char letter : text) {
    if (is_line_start && (letter == '.' || letter == '\'')) result += "\\&";
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else {
      result += letter;
    }
    is_line_start = letter == '\n';
  }
  return result;
}

// A paragraph with a hanging name.
std::string entry(std::string_view name, std::string_view text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(name), roff(text));
}

std::string flag_entry(const FlagRow& row) {
  std::string names;
  for (const std::string& name : row.names) {
    if (name.find('_') != std::string::npos) continue;  // an alternative spelling
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  }
  if (row.names.front().starts_with('-') && !row.metavar.empty()) names += " " + row.metavar;
  std::string text = row.help;
  for (char& letter : text) {
    if (letter == '\n') letter = ' ';
  }
  return entry(names, text.empty() ? "see the usage" : text);
}

}  // namespace

std::string manual_page(const CommandTable& table) {
  std::string text = fmt::format(
      ".TH POSENC 1 \"\" \"posenc {}\" \"User Commands\"\n"
      ".SH NAME\nposenc \\- positional encodings for Transformers\n"
      ".SH SYNOPSIS\n.B posenc\n.I COMMAND\n[\\fIARGUMENTS\\fR]\n"
      ".SH DESCRIPTION\n"
      "Computes, explains, checks and diagnoses positional encodings: sinusoidal, learned, rotary (RoPE), ALiBi, T5 "
      "and others. \\fBposenc COMMAND \\-\\-help\\fR shows what a command does, with examples.\n"
      ".SH COMMANDS\n",
      POSENC_VERSION);
  for (const VerbRow& verb : table.verbs) text += entry(verb.name, verb.summary);
  for (const VerbRow& verb : table.verbs) {
    text += fmt::format(".SS \"posenc {} {}\"\n", roff(verb.name), roff(verb.usage));
    for (const FlagRow& row : verb.flags) text += flag_entry(row);
  }
  text += ".SH SCHEMES\n";
  for (const SchemeRow& scheme : table.schemes) {
    text += fmt::format(".SS {}\n{}\n", roff(scheme.name), roff(scheme.formula));
    for (const FlagRow& row : scheme.fields) text += flag_entry(row);
  }
  text +=
      ".SH EXIT STATUS\n"
      ".TP\n0\ndone, or the answer is yes\n.TP\n1\nthe answer is no\n.TP\n2\nwrong usage or input\n"
      ".TP\n3\na file could not be read or written\n.TP\n4\nout of memory\n"
      ".SH ENVIRONMENT\n"
      ".TP\n.B NO_COLOR\nno colour in a terminal\n"
      ".TP\n.B POSENC_BACKEND\nbackend: cpu, reference or cuda\n";
  return text;
}

}  // namespace posenc::cli
