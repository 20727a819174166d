#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <variant>

#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/list_pages.h"
#include "cli/verbs/list_scalings.h"
#include "cli/verbs/verbs.h"
#include "posenc/backend.h"
#include "posenc/json.h"
#include "posenc/report_json.h"

namespace posenc::cli {
namespace {

struct SchemeCard {
  std::string_view name, family, formula, used_by;
  Scheme defaults;
};

template <class... S> std::vector<SchemeCard> cards_of(const std::variant<S...>*) {
  return {SchemeCard{S::name, S::family, S::formula, S::used_by, S{}}...};
}
std::vector<SchemeCard> all_cards() { return cards_of(static_cast<const Scheme*>(nullptr)); }

std::string as_text() {
  const bool colour = wants_colour(STDOUT_FILENO);
  int name_columns = 0, family_columns = 0;
  for (const SchemeCard& card : all_cards()) {
    name_columns = std::max(name_columns, columns_of(card.name));
    family_columns = std::max(family_columns, columns_of(card.family));
  }
  std::string text;
  const int room = output_columns() - name_columns - family_columns - 4;
  constexpr int kLeastRoom = 36;  // in less, formulas would break: they go below the name instead
  const auto row = [&](std::string_view name, std::string_view family, std::string_view rest, bool is_dim) {
    if (room < kLeastRoom) {
      if (!name.empty()) text += fmt::format("{}  {}\n", bold(name, colour), family);
      for (const std::string& line : wrap(rest, output_columns() - 2)) {
        text += fmt::format("  {}\n", is_dim ? dim(line, colour) : line);
      }
      return;
    }
    for (const std::string& line : wrap(rest, room)) {
      text += fmt::format("{}  {}  {}\n", bold(pad_right(name, name_columns), colour && !name.empty()),
                          pad_right(family, family_columns), is_dim ? dim(line, colour) : line);
      name = family = "";
    }
  };
  for (const SchemeCard& card : all_cards()) {
    row(card.name, card.family, card.formula, false);
    row("", "", fmt::format("used by: {}", card.used_by), true);
  }
  text += "\n";
  for (const std::string_view more :
       {"posenc list SCHEME shows a page on one.", "posenc list --scalings lists the scalings of rope."}) {
    for (const std::string& line : wrap(more, output_columns())) text += line + "\n";
  }
  return text;
}

// An extent that depends on the caller's table is null.
Json table_json(const TrainedTable& table) {
  if (table.axes.empty()) return nullptr;
  Json::Array axes, shape;
  for (const auto& [name, extent] : table.axes) {
    axes.emplace_back(name);
    shape.push_back(extent == kAnyExtent ? Json(nullptr) : Json(extent));
  }
  return Json::Object{{"axes", std::move(axes)},
                      {"shape", std::move(shape)},
                      {"for_keys_too", table.has_key_weights},
                      {"for_values_too", table.has_value_weights}};
}

Json length_json(LengthNeed need) {
  constexpr std::string_view kNames[] = {"", "distances", "positions", "sequence"};
  return need == LengthNeed::kNone ? Json(nullptr) : Json(kNames[static_cast<std::size_t>(need)]);
}

std::string as_json() {
  Json::Array list;
  for (const SchemeCard& card : all_cards()) {
    list.push_back(Json::Object{{"scheme", card.name},
                                {"family", card.family},
                                {"formula", card.formula},
                                {"used_by", card.used_by},
                                {"trained_table", table_json(trained_table_of(card.defaults))},
                                {"needs_length", length_json(length_need_of(card.defaults))},
                                {"defaults", json_of(card.defaults)}});
  }
  return dump_json(Json(std::move(list)), 2) + "\n";
}

// One line per backend: what it is for, or why it cannot run here.
struct BackendLine {
  std::string_view name, what;
};
constexpr BackendLine kBackends[] = {{"cpu", "SIMD and threads"},
                                     {"reference", "one element at a time; the reference for the others"},
                                     {"cuda", "an NVIDIA GPU"}};

std::string backends_as_text() {
  std::string text;
  for (const BackendLine& line : kBackends) {
    const std::string reason = why_absent(line.name);
    text += fmt::format("{:<9}  {}\n", line.name, reason.empty() ? std::string(line.what) : "absent: " + reason);
  }
  return text;
}
}  // namespace

Verb list_verb(Command program) {
  Verb verb;
  verb.name = "list";
  verb.summary = "list every scheme with its family, formula and users";
  verb.usage = "[SCHEME | --scalings | --families | --backends] [--json]";
  verb.details =
      "With SCHEME, shows a page about it: formula, papers, fields, users, pitfalls. A scheme encodes the position "
      "of a token. Its family says how: addition adds a vector to the token, rotation rotates pairs of features of "
      "queries and keys, bias adds to the attention scores, nothing means no encoding at all. Scalings extend rope "
      "beyond the length that a model was trained on.";
  verb.examples =
      "posenc list\nposenc list rope\nposenc list --json\nposenc list --scalings\nposenc list --families\n"
      "posenc list --backends";
  verb.command = program.add_subcommand(verb.name);
  auto page = std::make_shared<std::string>();
  verb.command.add_option("SCHEME", *page);
  auto families = std::make_shared<bool>(false);
  verb.command.add_flag("--families", *families, "list every model_type that inspect knows");
  auto json = std::make_shared<bool>(false);
  auto scalings = std::make_shared<bool>(false);
  verb.command.add_flag("--scalings", *scalings, "list the scalings of rope with their formulas and fields");
  auto backend_list = std::make_shared<bool>(false);
  verb.command.add_flag("--backends", *backend_list, "list the backends that can run here, and why others cannot");
  verb.command.add_flag("--json", *json, "print one JSON document with the default of every field");
  verb.run = [json, scalings, backend_list, families, page] {
    if (!page->empty()) {
      print(*json ? scheme_page_as_json(*page) : scheme_page_as_text(*page));
    } else if (*families) {
      print(*json ? families_as_json() : families_as_text());
    } else if (*backend_list) {
      print(*json ? dump_json(backends_json(), 2) + "\n" : backends_as_text());
    } else if (*scalings) {
      print(*json ? scalings_as_json() : scalings_as_text());
    } else {
      print(*json ? as_json() : as_text());
    }
    return 0;
  };
  return verb;
}

}  // namespace posenc::cli
