#pragma once

#include <string>
#include <vector>

#include "cli/flags/command.h"
#include "posenc/json.h"

namespace posenc::cli {

// Every verb with its flags, and every scheme with its fields, as data: printed by `posenc help --json`, and the
// source of completions and manual pages. It is read from the parser's own declarations.

struct FlagRow {
  std::vector<std::string> names = {};  // "--output", "-o"; of an argument, its name: "IN"
  std::string metavar = {};             // "FILE"; "": takes no value
  std::string help = {};
  FlagValues values = {};
};

struct VerbRow {
  std::string name = {}, summary = {}, usage = {};
  bool takes_scheme = false;  // by name, with the flags of its fields
  std::vector<FlagRow> arguments = {}, flags = {};
};

struct SchemeRow {
  std::string name = {}, formula = {};
  std::vector<FlagRow> fields = {};
};

struct CommandTable {
  std::vector<VerbRow> verbs = {};
  std::vector<SchemeRow> schemes = {};
};

CommandTable command_table();
Json to_json(const CommandTable& table);

}  // namespace posenc::cli
