#include "cli/verbs/command_table.h"

#include <memory>
#include <utility>

#include "cli/verbs/verbs.h"

namespace posenc::cli {
namespace {

FlagRow row_of(const Flag& flag) {
  FlagRow row{.metavar = flag.metavar(), .help = flag.description(), .values = flag.values()};
  for (const std::string& name : flag.long_names()) row.names.push_back("--" + name);
  for (const std::string& letter : flag.short_names()) row.names.push_back("-" + letter);
  if (row.names.empty()) row.names.push_back(row.metavar);
  return row;
}

VerbRow row_of(const Verb& verb) {
  VerbRow row{.name = std::string(verb.name),
              .summary = std::string(verb.summary),
              .usage = std::string(verb.usage),
              .takes_scheme = verb.command.has_subcommands()};
  for (const Flag& flag : verb.command.options()) {
    (flag.long_names().empty() ? row.arguments : row.flags).push_back(row_of(flag));
  }
  return row;
}

// Empty values are omitted.
Json json_of_row(const FlagRow& row) {
  Json::Object object = {{"names", Json::Array(row.names.begin(), row.names.end())}};
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) object.emplace_back(key, value);
  };
  add("metavar", row.metavar);
  add("default", row.values.default_value);
  add("least", row.values.least);
  add("most", row.values.most);
  if (!row.values.choices.empty()) {
    object.emplace_back("choices", Json::Array(row.values.choices.begin(), row.values.choices.end()));
  }
  add("help", row.help);
  return object;
}

Json json_of_rows(const std::vector<FlagRow>& rows) {
  Json::Array list;
  for (const FlagRow& row : rows) list.push_back(json_of_row(row));
  return list;
}

}  // namespace

CommandTable command_table() {
  CommandTable table;
  const auto scheme = std::make_shared<SchemeRequest>();
  Parser parser("posenc", "-h,--help");
  for (const Verb& verb : make_verbs(parser.program(), scheme, std::make_shared<std::vector<SchemeRequest>>(), "")) {
    table.verbs.push_back(row_of(verb));
  }
  for (const std::string_view name : scheme_names()) {
    Parser alone("", "");
    const Command command = command_of_scheme(alone.program(), name, scheme);
    SchemeRow row{.name = std::string(name), .formula = command.description()};
    for (const Flag& flag : command.options()) row.fields.push_back(row_of(flag));
    table.schemes.push_back(std::move(row));
  }
  return table;
}

Json to_json(const CommandTable& table) {
  Json::Array verbs, schemes;
  for (const VerbRow& verb : table.verbs) {
    verbs.push_back(Json::Object{{"name", verb.name},
                                 {"summary", verb.summary},
                                 {"usage", verb.usage},
                                 {"takes_scheme", verb.takes_scheme},
                                 {"arguments", json_of_rows(verb.arguments)},
                                 {"flags", json_of_rows(verb.flags)}});
  }
  for (const SchemeRow& scheme : table.schemes) {
    schemes.push_back(
        Json::Object{{"name", scheme.name}, {"formula", scheme.formula}, {"fields", json_of_rows(scheme.fields)}});
  }
  return Json::Object{{"verbs", std::move(verbs)}, {"schemes", std::move(schemes)}};
}

}  // namespace posenc::cli
