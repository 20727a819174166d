// posenc plot decay rope --base 500000 alibi --heads 4 '{"scheme":"kerple"}': each scheme followed by its flags.

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/flags/arguments.h"
#include "posenc/aliases.h"
#include "posenc/scheme.h"

namespace posenc::cli {
namespace {

bool is_scheme(const std::string& word) {
  const std::vector<std::string_view> names = scheme_names();
  return (word.starts_with('{') && word.ends_with('}')) || std::find(names.begin(), names.end(), word) != names.end();
}

// Whether the next word is this one's value: --title rope is not a scheme.
bool takes_next(const std::string& word) {
  static constexpr std::array<std::string_view, 6> kAlone = {"--json",  "--quiet", "--force",
                                                             "--lines", "--help",  "-h"};
  return word.size() > 1 && word.starts_with('-') && word.find('=') == std::string::npos &&
         std::find(kAlone.begin(), kAlone.end(), word) == kAlone.end();
}

// The indices of the schemes among the words.
std::vector<std::size_t> places_of_schemes(const std::vector<std::string>& words) {
  std::vector<std::size_t> places;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (takes_next(words[i])) {
      ++i;
    } else if (is_scheme(words[i])) {
      places.push_back(i);
    }
  }
  return places;
}

// One scheme with its flags; `rest` receives the words that do not belong to it.
SchemeRequest scheme_of(std::vector<std::string> words, std::vector<std::string>& rest) {
  const auto request = std::make_shared<SchemeRequest>(take_json_scheme(words));
  Parser parser("", "");
  Command alone = parser.program();
  alone.allow_extras();
  add_scheme_commands(alone, request);
  parser.parse(words);
  for (const std::string& word : alone.remaining()) rest.push_back(word);
  return *request;
}

constexpr std::array<std::string_view, 7> kVerbsWithSchemes = {"table", "apply", "attend", "check",
                                                               "prove", "plot",  "list"};

}  // namespace

void accept_other_names(std::vector<std::string>& arguments) {
  if (arguments.empty()) return;
  const auto& verbs = kVerbsWithSchemes;
  if (std::find(verbs.begin(), verbs.end(), arguments.front()) == verbs.end()) return;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (takes_next(arguments[i])) {
      ++i;
    } else if (const std::string_view meant = scheme_meant(arguments[i]); is_scheme(std::string(meant))) {
      arguments[i] = meant;
      // what follows may be a file of that name
      if (arguments.front() != "plot") return;
    }
  }
}

std::vector<SchemeRequest> take_further_schemes(std::vector<std::string>& arguments) {
  std::vector<SchemeRequest> schemes;
  if (arguments.empty() || arguments.front() != "plot") return schemes;
  const std::vector<std::size_t> places = places_of_schemes(arguments);
  std::vector<std::string> rest;
  for (std::size_t i = 1; i < places.size(); ++i) {
    const std::size_t end = i + 1 < places.size() ? places[i + 1] : arguments.size();
    const auto at = [&](std::size_t index) { return arguments.begin() + static_cast<std::ptrdiff_t>(index); };
    schemes.push_back(scheme_of({at(places[i]), at(end)}, rest));
  }
  if (schemes.empty()) return schemes;
  // the verb's own flags, wherever they were, now precede the first scheme, which must not take them for its own
  arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(places[1]), arguments.end());
  arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(places[0]), rest.begin(), rest.end());
  return schemes;
}

}  // namespace posenc::cli
