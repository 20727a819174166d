#include <algorithm>
#include <functional>

#include "cli/verbs/verbs.h"

namespace posenc::cli {
namespace {

struct VerbMaker {
  std::string_view name;
  std::function<Verb()> make;
};

}  // namespace

std::vector<Verb> make_verbs(Command program, const std::shared_ptr<SchemeRequest>& scheme,
                             const std::shared_ptr<std::vector<SchemeRequest>>& further,
                             std::string_view first_word) {
  const std::vector<VerbMaker> makers = {
      {"tour", [&] { return tour_verb(program); }},
      {"explain", [&] { return explain_verb(program); }},
      {"prove", [&] { return prove_verb(program, scheme); }},
      {"plot", [&] { return plot_verb(program, scheme, further); }},
      {"practice", [&] { return practice_verb(program); }},
      {"cards", [&] { return cards_verb(program); }},
      {"explore", [&] { return explore_verb(program); }},
      {"lab", [&] { return lab_verb(program); }},
      {"list", [&] { return list_verb(program); }},
      {"table", [&] { return table_verb(program, scheme); }},
      {"apply", [&] { return apply_verb(program, scheme); }},
      {"attend", [&] { return attend_verb(program, scheme); }},
      {"inspect", [&] { return inspect_verb(program); }},
      {"compare", [&] { return compare_verb(program); }},
      {"check", [&] { return check_verb(program, scheme); }},
      {"diagnose", [&] { return diagnose_verb(program); }},
      {"positions", [&] { return positions_verb(program); }},
      {"convert", [&] { return convert_verb(program); }},
  };
  const auto is_named = [&](const VerbMaker& maker) { return maker.name == first_word; };
  const bool one_is_named = std::any_of(makers.begin(), makers.end(), is_named);
  std::vector<Verb> verbs;
  for (const VerbMaker& maker : makers) {
    if (!one_is_named || is_named(maker)) verbs.push_back(maker.make());
  }
  return verbs;
}

}  // namespace posenc::cli
