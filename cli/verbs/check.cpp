#include "posenc/check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/arrays/two_tensors.h"
#include "cli/flags/model_file.h"
#include "cli/flags/positions_argument.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/check_dump.h"
#include "cli/verbs/table_bias.h"
#include "cli/verbs/verbs.h"
#include "posenc/report_json.h"

namespace posenc::cli {
namespace {

struct CheckFlags {
  TwoTensorFlags tensors;
  ModelFlags model;
  std::string keys, dump;
  std::optional<double> tolerance;
  std::optional<std::int64_t> length;
  bool is_causal = false;
};

// Fields of a scheme that were not given follow from the file.
void follow_shape(SchemeRequest& request, const Extents& shape, const std::string& path) {
  if (is_bias(request.scheme)) {
    if (shape.rank > 2) follow_file(request, "heads", shape.back(2), path);
    return;
  }
  const std::string_view field = std::holds_alternative<Rope>(request.scheme) ? "dims" : "width";
  if (!is_given(request, field)) follow_file(request, field, shape.back(0), path);
}

std::vector<std::int64_t> ids_of(const PositionList& list) {
  std::vector<std::int64_t> ids;
  for (int axis = 0; axis < list.axes; ++axis) {
    for (std::int64_t i = 0; i < list.count; ++i) ids.push_back(position_at(list, axis, i));
  }
  return ids;
}

std::string agreement_text(const CheckResult& result) {
  std::string text = fmt::format("largest difference {:.3g}", result.largest_difference);
  if (result.numerics != Numerics::kExact) text += fmt::format(", with {} angles", name_of(result.numerics));
  if (result.masked > 0) text += fmt::format("; {} masked scores skipped", result.masked);
  if (result.largest_change == 0) text += "; the scheme changes nothing at these positions";
  if (result.values_type)
    text += fmt::format("; all values are {}, and compared as such", name_of(*result.values_type));
  return text;
}

std::string names_text(std::string_view title, const std::vector<Alternative>& alternatives) {
  if (alternatives.empty()) return "";
  std::vector<std::string_view> names;
  for (const Alternative& one : alternatives) names.push_back(one.name);
  return bullet(fmt::format("{}: {}", title, fmt::join(names, ", ")));
}

void report_text(const CheckResult& result) {
  const bool colour = wants_colour(STDOUT_FILENO);
  const std::string excluded = names_text("excluded", result.excluded);
  if (result.agreement == Agreement::kAgrees) {
    return print(fmt::format("{}: {}\n{}", bold("agrees", colour), agreement_text(result), excluded));
  }
  if (result.agreement == Agreement::kUpToQuery) {
    return print(fmt::format("{} up to a constant per query, which the softmax removes: {}\n{}",
                             bold("agrees", colour), agreement_text(result), excluded));
  }
  if (result.agreement == Agreement::kUpToPermutation) {
    return print(fmt::format("{} up to a permutation of q and k: scores are the same if both are rotated so: {}\n{}",
                             bold("agrees", colour), agreement_text(result), excluded));
  }
  if (result.agreement == Agreement::kInconclusive) {
    std::string text;
    for (const std::string& line : wrap("inconclusive: " + result.reason, std::min(output_columns(), 100))) {
      text += line + "\n";
    }
    text.replace(0, std::string_view("inconclusive").size(), bold("inconclusive", colour));
    text += bullet(fmt::format("no difference was found: {}", agreement_text(result)));
    std::vector<Alternative> open = result.unseen;
    const auto rounded = std::stable_partition(open.begin(), open.end(), [](auto& one) { return !one.is_rounding; });
    text += names_text("not excluded", {open.begin(), rounded});
    return print(text + names_text("not excluded, rounding alone", {rounded, open.end()}) + excluded);
  }
  std::string text = fmt::format("{}: at [{}] expected {:.7g}, got {:.7g}; largest difference {:.3g}\n\n",
                                 bold("differs", colour), fmt::join(result.first->index, ", "),
                                 result.first->expected, result.first->got, result.largest_difference);
  if (result.values_type)
    text += fmt::format("all values are {}, and compared as such\n\n", name_of(*result.values_type));
  if (!result.where.empty()) text += fmt::format("{}\n\n", result.where);
  text += bold("What was applied", colour) + "\n" + diagnosis_text(result.diagnosis, true);
  if (!result.advice.empty()) text += "\n" + bold("What to change", colour) + "\n";
  for (const std::string& line : result.advice) text += bullet(line);
  print(text);
}

int run_dump(const CheckFlags& flags, const SchemeRequest& request) {
  if (request.is_chosen || flags.model.path.empty()) refuse("check: --dump needs --model: layers differ");
  if (!flags.tensors.before.empty() || !flags.tensors.after.empty())
    refuse("check: --dump needs no BEFORE and AFTER");
  for (const auto& [is_given, name] : {std::pair(!flags.model.layer_type.empty(), "--layer-type"),
                                       {!flags.keys.empty(), "--keys"},
                                       {flags.is_causal, "--causal"},
                                       {!request.weights_path.empty(), "--table"}}) {
    if (is_given) refuse(fmt::format("check: --dump and {} cannot be combined", name));
  }
  DumpFlags dump{.path = flags.dump, .model = flags.model, .tensors = flags.tensors, .options = {}};
  dump.options.tolerance = flags.tolerance.value_or(dump.options.tolerance);
  dump.options.length = flags.length.value_or(dump.options.length);
  return check_dump(dump);
}

int run(const CheckFlags& flags, SchemeRequest& request) {
  const TwoTensors two = read_two_tensors(flags.tensors, "check");
  CheckOptions options{.positions = two.positions, .axes = two.axes, .is_causal = flags.is_causal};
  if (!flags.model.path.empty())
    options.first_position = take_model(flags.model, request, "check", true).first_position;
  if (is_bias(request.scheme) && !flags.tensors.axes.empty()) {
    refuse(fmt::format("check: {} is compared on scores, [batch, heads, queries, keys]; --axes is for vectors",
                       name_of(request.scheme)));
  }
  if (flags.model.path.empty() || is_bias(request.scheme)) {
    follow_shape(request, two.before_view.shape, flags.tensors.before);
  }
  const NpyArray weights = read_weights(request, {.void2_is_bf16 = flags.tensors.dtype == "bf16"});
  if (!weights.bytes.empty()) options.weights = weights.view();
  options.tolerance = flags.tolerance.value_or(options.tolerance);
  options.length = flags.length.value_or(options.length);
  std::vector<std::int64_t> keys;
  if (!flags.keys.empty()) {
    const PositionList list = positions_from(flags.keys, "--keys");
    if (list.axes != two.axes) refuse("--keys: must have as many axes as --positions");
    keys = ids_of(list);
    options.keys = keys;
  }
  CheckResult result = check(request.scheme, two.before_view, two.after_view, options);
  if (result.first && flags.tensors.axes.ends_with("shd")) {
    // in the file's own order
    std::vector<std::int64_t>& index = result.first->index;
    std::swap(index[index.size() - 3], index[index.size() - 2]);
  }
  flags.tensors.json ? print(dump_json(json_of(result), 2) + "\n") : report_text(result);
  const bool is_no = result.agreement == Agreement::kDiffers || result.agreement == Agreement::kInconclusive;
  return is_no ? kNo : kDone;
}

}  // namespace

Verb check_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme) {
  Verb verb;
  verb.name = "check";
  verb.summary = "check your implementation against a scheme or a model";
  verb.usage = "SCHEME|--model PATH BEFORE AFTER [--positions P], or --model PATH --dump PATH";
  verb.details =
      "Applies the scheme to BEFORE and compares the result with AFTER, element by element. For rotations and "
      "additions both are vectors, [..., sequence, features]. For biases (alibi, t5, sandwich …) they are scores "
      "before the softmax, without and with the bias: [queries, keys], [heads, queries, keys] or [batch, heads, "
      "queries, keys]; --positions are those of the queries, which by default are the last of the keys; masked "
      "scores (-inf) of later keys are skipped. If AFTER differs, prints the first differing element, the convention "
      "that was applied instead and what to change. It agrees only if every known mistake would have been seen: "
      "otherwise the verdict is inconclusive, with the tokens that would decide (later positions, or float32). Exits "
      "with 0 if AFTER agrees (for biases up to a constant per query, for rotations up to a permutation of q and k), and "
      "with 1 if it differs or if the check is inconclusive. The float32 angles of Hugging "
      "Face and ggml count as correct. --dump checks every layer that a hook in a running model wrote, and that queries "
      "and keys fit each other.";
  verb.examples =
      "posenc check rope q.npy q_rotated.npy --theta 500000\n"
      "posenc check --model config.json q.npy q_rotated.npy --positions 0:16\n"
      "posenc check --model config.json --dump hook.safetensors\n"
      "posenc check alibi --before scores.npy --after scores_biased.npy --causal\n"
      "posenc check learned --table wpe.npy --before x.npy --after x_with_position.npy";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<CheckFlags>();
  add_model_flags(verb.command, flags->model);
  add_table_flag(verb.command, scheme);
  add_two_tensor_flags(verb.command, flags->tensors);
  verb.command.add_option("--keys", flags->keys, "for biases: position of each key (default: consecutive from 0)")
      .type_name("P");
  verb.command.add_flag("--causal", flags->is_causal, "for biases: compare only keys at or before their query");
  verb.command.add_number("--tolerance", flags->tolerance, {.least = 0, .without_least = true},
                          "largest difference, relative to the norm of a pair or the size of an element (default: by "
                          "type, 2e-6 for f32)");
  verb.command.add_integer(
      "--length", flags->length, {.least = 1},
      "tokens in the whole sequence, for scalings that depend on it (dynamic, longrope; default: "
      "up to the last position)");
  verb.command
      .add_option("--part", flags->model.part, "a part of the model instead of the one that generates text: vision …")
      .type_name("NAME");
  verb.command
      .add_option(
          "--dump", flags->dump,
          "check every layer that a hook wrote: a folder of layers.N.q.before.npy, layers.N.q.after.npy, the same "
          "for k, and positions.npy if they are not consecutive; or tensors of these names in .safetensors files")
      .type_name("PATH");
  add_scheme_commands(verb.command, scheme);
  verb.checks_words = true;
  verb.run = [flags, scheme, verb] {
    if (flags->model.path.empty() && flags->dump.empty()) {
      // without a known scheme, its misspelt name was taken for a path
      const std::vector<std::string>& words = flags->tensors.paths;
      require_scheme(verb, *scheme, words.empty() ? "" : words.front());
    }
    refuse_leftovers(verb.command);
    if (!flags->model.part.empty() && flags->model.path.empty()) refuse("check: --part needs --model");
    place_paths(flags->tensors, verb.name);
    // after a scheme with its own axes, the letters were taken for it
    if (flags->tensors.axes.empty()) flags->tensors.axes = scheme->axes_of_x;
    return flags->dump.empty() ? run(*flags, *scheme) : run_dump(*flags, *scheme);
  };
  return verb;
}

}  // namespace posenc::cli
