#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/flags/engine_flags.h"
#include "cli/pages/prove_text.h"
#include "cli/system/failure.h"
#include "cli/system/progress.h"
#include "cli/system/signals.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/verbs.h"
#include "posenc/error.h"

namespace posenc::cli {
namespace {

constexpr std::int64_t kWidestMatrix = 8;

struct ProveFlags {
  std::int64_t length = 1024, seed = 1;
  bool json = false, quiet = false;
  EngineFlags engine;
};

// What to prove: one scheme with its fields, or several with their defaults.
struct Subjects {
  std::vector<Scheme> schemes;
  bool are_named = false;
  NpyArray weights;  // of the one scheme
};

bool has_flags(const Command& chosen) {
  const auto options = chosen.options();
  return std::any_of(options.begin(), options.end(),
                     [](const Flag& option) { return option.group() == kFieldGroup && option.is_given(); });
}

Scheme scheme_from(const std::string& word) {
  try {
    return word.starts_with('{') ? scheme_from_json(word) : for_proving(scheme_named(word));
  } catch (const Error& error) {
    refuse(fmt::format("prove: {}", error.what()));
  }
}

Subjects subjects_of(const Verb& verb, SchemeRequest& request) {
  Subjects subjects;
  if (!request.is_chosen) {
    subjects.are_named = !verb.command.remaining().empty();
    if (!subjects.are_named) subjects.schemes = schemes_to_prove();
  } else {
    subjects.are_named = true;
    if (!request.weights_path.empty()) subjects.weights = read_weights(request, {});
    const bool has_width = is_given(request, "width") || !request.weights_path.empty();
    subjects.schemes.push_back(has_width ? request.scheme : for_proving(request.scheme));
  }
  const std::vector<std::string> words = verb.command.remaining();
  for (const std::string& word : words) {
    if (word.starts_with('-') && (words.front() == word || subjects.schemes.empty())) refuse_leftovers(verb.command);
    if (word.starts_with('-')) refuse(fmt::format("prove: {}: fields can be set only for a single scheme", word));
    subjects.schemes.push_back(scheme_from(word));
  }
  for (const Command& chosen : verb.command.chosen_subcommands()) {
    if (subjects.schemes.size() > 1 && has_flags(chosen)) {
      refuse("prove: fields can be set only for a single scheme; for several, pass them as JSON");
    }
  }
  return subjects;
}

// One property at a time, so that progress can be shown.
Proven proven_of(const Scheme& scheme, const ProveOptions& options, bool in_full, Progress& progress) {
  const Trial trial = make_trial(scheme, options);
  Proven proven;
  proven.scheme = *trial.scheme;
  proven.has_random_weights = trial.has_random_weights;
  for (const PropertyCard& card : property_cards()) {
    proven.findings.push_back(measure(card.property, trial));
    stop_if_signalled();
    progress.advance(1);
  }
  if (!in_full) return proven;
  proven.cost = cost_per_token(scheme);
  proven.numerics = compare_numerics(*trial.scheme, options);
  const bool holds = proven.findings[static_cast<std::size_t>(Property::kLinearShift)].outcome == Outcome::kHolds;
  if (holds && trial.length > 2) {
    proven.one_further = shift_matrix(trial.form, 1, {.length = trial.length, .widest = kWidestMatrix});
  }
  progress.advance(1);
  return proven;
}

std::string as_text(const std::vector<Proven>& proven, const Subjects& subjects, const ProveOptions& options) {
  const bool colour = wants_colour(STDOUT_FILENO);
  const int columns = output_columns();
  std::string text;
  if (!subjects.are_named) {
    text += properties_table(proven, columns, colour) + "\n";
    for (const std::string& line :
         wrap(fmt::format(
                  "Tested over {} positions with seed {}. ✓ holds, ✗ fails, · does not apply, ! is not as expected "
                  "of the scheme, * trained tables drawn at random. posenc prove SCHEME explains each result.",
                  options.length, options.seed),
              columns)) {
      text += line + "\n";
    }
    return text + "\n" + properties_legend(columns, colour);
  }
  for (const Proven& one : proven) {
    if (!text.empty()) text += "\n";
    text += findings_text(one, std::min(columns, 110), colour);
  }
  return text;
}

std::string as_json(const std::vector<Proven>& proven, const ProveOptions& options, bool is_as_claimed) {
  Json::Array list;
  for (const Proven& one : proven) list.push_back(findings_json(one));
  const Json::Object document = {{"length", options.length},
                                 {"seed", options.seed},
                                 {"as_claimed", is_as_claimed},
                                 {"schemes", std::move(list)}};
  return dump_json(Json(document), 2) + "\n";
}

int run(const ProveFlags& flags, const Subjects& subjects) {
  use_engine(flags.engine);
  ProveOptions options;
  options.length = flags.length;
  options.seed = flags.seed;
  if (!subjects.weights.bytes.empty()) options.weights = subjects.weights.view();

  const bool in_full = subjects.are_named || flags.json;
  std::vector<Proven> proven;
  bool are_as_claimed = true;
  {
    const auto each = static_cast<double>(property_cards().size() + (in_full ? 1 : 0));
    Progress progress(each * static_cast<double>(subjects.schemes.size()), !flags.quiet, "measurements");
    for (const Scheme& scheme : subjects.schemes) {
      proven.push_back(proven_of(scheme, options, in_full, progress));
      for (const Finding& finding : proven.back().findings) are_as_claimed = are_as_claimed && is_as_claimed(finding);
    }
  }
  print(flags.json ? as_json(proven, options, are_as_claimed) : as_text(proven, subjects, options));
  return are_as_claimed ? kDone : kNo;
}

}  // namespace

Verb prove_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme) {
  Verb verb;
  verb.name = "prove";
  verb.summary = "test each scheme's properties numerically";
  verb.usage = "[SCHEME ...] [--length N] [--json]";
  verb.details =
      "Without SCHEME, prints a table of every property of every scheme. With one or more, explains each result in a "
      "sentence. The fields of a single scheme can be set; the defaults are used otherwise, with 64 features where a "
      "scheme has a width. Trained tables that are not given (--table) are drawn at random from --seed. Bounds "
      "follow from the number formats; none is fitted. Exits with 1 if a result is not as expected of the scheme.";
  verb.examples =
      "posenc prove\n"
      "posenc prove rope alibi\n"
      "posenc prove sinusoidal --width 8\n"
      "posenc prove rope --length 10000000\n"
      "posenc prove --json";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<ProveFlags>();
  verb.command.add_integer("--length", flags->length, {2, kPositionLimit},
                           "positions 0 to N - 1; of a large N, both ends are sampled");
  verb.command.add_integer("--seed", flags->seed, {}, "seed of everything that is drawn at random");
  verb.command.add_flag("--json", flags->json, "print one JSON document with all measurements");
  verb.command.add_flag("--quiet", flags->quiet, "no progress bar");
  add_engine_flags(verb.command, flags->engine);
  add_scheme_commands(verb.command, scheme);
  verb.checks_words = true;
  verb.run = [flags, scheme, verb] { return run(*flags, subjects_of(verb, *scheme)); };
  return verb;
}

}  // namespace posenc::cli
