#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>

#include "cli/arrays/array_output.h"
#include "cli/arrays/elements.h"
#include "cli/arrays/input_array.h"
#include "cli/arrays/token_stream.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/length_flag.h"
#include "cli/flags/model_file.h"
#include "cli/flags/positions_argument.h"
#include "cli/flags/type_flags.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/verbs/apply_rotation.h"
#include "cli/verbs/table_rotation.h"
#include "cli/verbs/verbs.h"

namespace posenc::cli {
namespace {

struct ApplyFlags {
  ModelFlags model;
  std::string input, output;
  std::string positions, grid;
  std::string dtype, numerics = "exact";
  std::optional<std::int64_t> length;
  RotationFlags rotation;
  bool quiet = false, force = false;
  EngineFlags engine;
};

void add_flags(Command verb, ApplyFlags& flags, std::string& axes_of_x) {
  verb.add_option("IN", flags.input);
  add_model_flags(verb, flags.model);
  verb.add_option("-o,--output", flags.output, "output: a .npy or .safetensors file, or - for standard output")
      .type_name("FILE");
  verb.add_option("--positions", flags.positions,
                  "position of each token: 8 (one), 0:8 (0 to 7), 0:4096:64 (every 64th), 0,1,5 (a list), @ids.npy "
                  "(int64, [n] or [axes, n]; default: 0, 1, 2 and so on)")
      .type_name("P");
  verb.add_option("--grid", flags.grid, "for schemes with axes: every point of a grid, row by row, e.g. 14,14")
      .type_name("H,W");
  verb.add_option("--axes", axes_of_x,
                  "axes of IN (b batch, s sequence, d width): sd or bsd, by default from their number; for rotations "
                  "hsd, shd, bhsd or bshd (h heads, d features per head), required")
      .type_name("WORD");
  add_dtype_flag(verb, flags.dtype, "IN and of the result");
  add_numerics_flag(verb, flags.numerics);
  add_length_flag(verb, flags.length);
  add_rotation_flags(verb, flags.rotation);
  verb.add_flag("--force", flags.force, "replace FILE if it exists");
  verb.add_flag("--quiet", flags.quiet, "print only errors, no messages and no progress bar");
  add_engine_flags(verb, flags.engine);
}

// One position for each token of a sequence, or of the whole batch.
PositionList positions_of(const ApplyFlags& flags, const Tokens& x, int axes, std::int64_t first) {
  if (!flags.positions.empty() && !flags.grid.empty()) refuse("--positions and --grid cannot be combined");
  PositionList list;
  if (!flags.grid.empty()) {
    list = positions_of_grid(flags.grid);
  } else if (!flags.positions.empty()) {
    list = positions_from(flags.positions);
  } else {
    list.first = first;
    list.count = x.sequence;
  }
  // [batch, sequence]: each sequence has its own
  if (axes == 1 && list.axes == x.batch && list.count == x.sequence && !list.ids.empty()) {
    list.count *= list.axes;
    list.axes = 1;
  }
  const bool is_own = list.axes == axes && !list.ids.empty() && list.count == x.batch * x.sequence;
  if (list.count != x.sequence && !is_own) {
    refuse(fmt::format("{} has {} tokens per sequence, but {} positions are given", flags.input, x.sequence,
                       list.count));
  }
  return list;
}

ArrayOutput open_output(const ApplyFlags& flags, const InputArray& input) {
  if (flags.output != "-") {
    output_format(flags.output, ArrayFiles::kNpyOrSafetensors);
    refuse_same_file(input, flags.output, flags.force);
  }
  return ArrayOutput(flags.output, flags.force, ArrayFiles::kNpyOrSafetensors);
}

void check_type(const InputArray& input, const std::string& dtype) {
  if (dtype.empty() || float_type_from(dtype) == input.type()) return;
  refuse(fmt::format("{} contains {}, but --dtype is {}", input.path(), name_of(input.type()), dtype));
}

// The width of x is the width of the scheme, unless the user or the trained table gives another.
void match_width(SchemeRequest& request, const Tokens& x, const InputArray& input) {
  for (const auto& [name, width] : trained_table_of(request.scheme).axes) {
    if (name != "width") continue;
    if (width == x.width) return;
    refuse(fmt::format("{} has width {}, but {} has width {}", input.path(), x.width, request.weights_path, width));
  }
  follow_file(request, "width", x.width, input.path());
}

// Writes an array like the input: what `work` produces.
int write_result(const ApplyFlags& flags, const InputArray& input, ArrayOutput& output,
                 const std::function<void(const ByteSink&)>& work) {
  output.begin("out", input.type(), input.shape());
  work([&](std::string_view bytes) { output.write(bytes); });
  output.publish(flags.quiet);
  return kDone;
}

int rotate_file(const ApplyFlags& flags, SchemeRequest& request, const InputArray& input, PrepareOptions options,
                std::int64_t first) {
  const Heads x = heads_of(input, request.axes_of_x);
  follow_heads(request, x);
  options.precision = precision_of(flags.rotation);
  const NpyArray weights = read_weights(request, {.void2_is_bf16 = flags.dtype == "bf16"});
  const Rotation form = directed(std::get<Rotation>(form_of(request, options, weights)), flags.rotation);
  check_heads(form, x, input);
  const PositionList positions = positions_of(flags, {x.batch, x.sequence}, position_axes_of(form), first);
  check_axes(name_of(request.scheme), position_axes_of(form), positions);
  try_ends(form, positions);
  ArrayOutput output = open_output(flags, input);
  return write_result(flags, input, output,
                      [&](const ByteSink& sink) { rotate_in_pieces(input, x, form, positions, sink, !flags.quiet); });
}

int run(const ApplyFlags& flags, SchemeRequest& request) {
  use_engine(flags.engine);
  if (flags.input.empty()) refuse("apply: the input is missing (posenc apply SCHEME IN.npy -o OUT.npy)");
  if (flags.output.empty()) refuse("apply: the output is missing (-o OUT.npy)");
  std::int64_t first = 0;
  if (!flags.model.path.empty()) first = take_model(flags.model, request, "apply", flags.quiet).first_position;

  const NpyOptions file_options{.void2_is_bf16 = flags.dtype == "bf16"};
  const InputArray input(flags.input, file_options);
  check_type(input, flags.dtype);
  if (!flags.quiet) {
    for (const std::string& note : input.notes()) tell(fmt::format("note: {}: {}", input.path(), one_line(note)));
  }
  PrepareOptions options;
  options.numerics = numerics_from(flags.numerics);
  options.length = length_for(request.scheme, flags.length);
  if (is_rotation(request.scheme)) return rotate_file(flags, request, input, options, first);

  refuse_rotation_flags(flags.rotation, name_of(request.scheme));
  const Tokens x = tokens_of(input, request.axes_of_x);
  const NpyArray weights = read_weights(request, file_options);
  match_width(request, x, input);
  ArrayOutput output = open_output(flags, input);
  const Form form = form_of(request, options, weights);
  if (std::holds_alternative<Bias>(form)) {
    refuse(fmt::format("{0}: adds to the scores of attention, not to tokens (posenc attend {0} --q … applies it)",
                       name_of(request.scheme)));
  }
  const auto* const addition = std::get_if<Addition>(&form);
  if (addition == nullptr) {
    return write_result(flags, input, output, [&](const ByteSink& sink) { copy_in_pieces(input, sink); });
  }
  const PositionList positions = positions_of(flags, x, position_axes_of(*addition), first);
  check_axes(name_of(request.scheme), position_axes_of(*addition), positions);
  try_largest(*addition, positions);
  return write_result(flags, input, output, [&](const ByteSink& sink) {
    add_in_pieces(input, x, *addition, positions, sink, !flags.quiet);
  });
}

}  // namespace

Verb apply_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme) {
  Verb verb;
  verb.name = "apply";
  verb.summary = "apply a positional encoding to vectors in a file (add it, or rotate q and k)";
  verb.usage = "SCHEME|--model PATH IN.npy -o OUT.npy [options]";
  verb.details =
      "IN contains token vectors, [sequence, width] or [batch, sequence, width], in f32, f64, f16 or bf16; the "
      "result has the same shape and type. The width of the scheme is that of IN. For rope, IN contains queries or "
      "keys with their heads, and --axes gives their order; all of the head dimension is rotated unless --dims limits "
      "them. With --model, the scheme is the one that inspect shows. The file is processed in pieces, so it may be "
      "larger than memory. An array is x.npy, x.npz:name or x.safetensors:name; a file with a single array needs no "
      "name.";
  verb.examples =
      "posenc apply sinusoidal x.npy -o y.npy\n"
      "posenc apply sinusoidal x.npy -o y.npy --positions 4096:8192 --axes bsd\n"
      "posenc apply rope q.npy -o y.npy --axes bhsd --base 500000\n"
      "posenc apply rope q.npy -o y.npy --axes bhsd --backward\n"
      "posenc apply --model config.json q.npy -o y.npy --axes bhsd --positions 0:16 --numerics hf-f32\n"
      "posenc apply learned x.npy -o y.npy --table model.safetensors:wpe.weight\n"
      "posenc apply sinusoidal x.npy -o y.npy --positions @ids.npy --layout sin-cos --spacing inclusive";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<ApplyFlags>();
  add_flags(verb.command, *flags, scheme->axes_of_x);
  add_table_flag(verb.command, scheme);
  add_scheme_commands(verb.command, scheme);
  verb.checks_words = true;
  verb.run = [flags, scheme, verb] {
    // without a known scheme, its misspelt name was taken for the input
    if (flags->model.path.empty()) require_scheme(verb, *scheme, flags->input);
    refuse_leftovers(verb.command);
    return run(*flags, *scheme);
  };
  return verb;
}

}  // namespace posenc::cli
