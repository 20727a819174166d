#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/arrays/array_output.h"
#include "cli/arrays/elements.h"
#include "cli/arrays/input_array.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/length_flag.h"
#include "cli/flags/model_file.h"
#include "cli/flags/positions_argument.h"
#include "cli/flags/type_flags.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/verbs/verbs.h"
#include "posenc/attention.h"
#include "posenc/backend.h"
#include "posenc/layer.h"

namespace posenc::cli {
namespace {

struct AttendFlags {
  ModelFlags model;
  std::string q, k, v, output, weights;
  std::string q_positions, k_positions;
  std::string vectors, key_vectors, value_vectors, position_queries, log_gates, sinks;
  std::optional<std::int64_t> window;
  std::optional<double> scale;
  std::string dtype, numerics = "exact";
  std::optional<std::int64_t> length;
  bool causal = false, rounds_rotated = false, quiet = false, force = false;
  EngineFlags engine;
};

void add_flags(Command verb, AttendFlags& flags, std::string& axes) {
  add_model_flags(verb, flags.model);
  verb.add_option("--q", flags.q, "queries, a .npy file").type_name("FILE");
  verb.add_option("--k", flags.k, "keys; with fewer heads than q, several query heads share one").type_name("FILE");
  verb.add_option("--v", flags.v, "values, one per key").type_name("FILE");
  verb.add_option("-o,--output", flags.output, "output: a .npy file, or - for standard output").type_name("FILE");
  verb.add_flag("--causal", flags.causal,
                "causal mask: a query attends only to its own and earlier keys (default: from the model)");
  verb.add_integer("--window", flags.window, {},
                   "a query attends only to keys less than N tokens away (default: as in the model, else all keys)");
  verb.add_number("--scale", flags.scale, {}, "multiplies q.k (default: as in the model, else 1/sqrt(features))");
  verb.add_flag("--round-rotated", flags.rounds_rotated,
                "round rotated q and k to f16 or bf16, as apply does (default: keep the precision of f32; slower)");
  verb.add_option("--weights", flags.weights,
                  "also write the softmax weights, [heads, queries, keys], of small inputs")
      .type_name("FILE");
  verb.add_option(
          "--q-positions", flags.q_positions,
          "position of each query, e.g. 0:8 or @ids.npy, [tokens] or [axes, tokens] (default: the keys' last)")
      .type_name("P");
  verb.add_option("--k-positions", flags.k_positions, "position of each key (default: 0, 1, 2 and so on)")
      .type_name("P");
  verb.add_option(
          "--vectors", flags.vectors,
          "vectors that multiply queries, [rows, features] or [heads, rows, features] (shaw, deberta, cope …)")
      .type_name("FILE");
  verb.add_option("--key-vectors", flags.key_vectors, "vectors by distance that multiply keys (deberta)")
      .type_name("FILE");
  verb.add_option("--value-vectors", flags.value_vectors, "vectors by distance that are added to values (shaw)")
      .type_name("FILE");
  verb.add_option("--position-queries", flags.position_queries,
                  "what multiplies the vectors instead of q, shaped as q (relative-logits)")
      .type_name("FILE");
  verb.add_option("--log-gates", flags.log_gates,
                  "logarithm of each token's forget gate, [heads, keys] or [batch, heads, keys] (forget-gate)")
      .type_name("FILE");
  verb.add_option("--sinks", flags.sinks, "a trained logit per head that joins each softmax (gpt-oss), [heads]")
      .type_name("FILE");
  verb.add_option("--axes", axes,
                  "axes of q, k and v: b batch, h heads, s sequence, d features; bhsd, bshd, hsd, shd or sd "
                  "(default: from their number, heads first)")
      .type_name("WORD");
  add_dtype_flag(verb, flags.dtype, "q, k and v");
  add_numerics_flag(verb, flags.numerics);
  add_length_flag(verb, flags.length);
  verb.add_flag("--force", flags.force, "replace files that exist");
  verb.add_flag("--quiet", flags.quiet, "print only errors");
  add_engine_flags(verb, flags.engine);
}

// An input with heads before tokens, whatever the order in the file.
struct Input {
  NpyArray array;
  bool is_swapped = false;

  ConstTensorView view() const {
    const ConstTensorView dense = array.view();
    return is_swapped ? swap_axes(dense, dense.shape.rank - 3, dense.shape.rank - 2) : dense;
  }
};

Input read_input(const std::string& flag, const std::string& path, const std::string& axes,
                 const AttendFlags& flags) {
  if (path.empty()) refuse(fmt::format("attend: {} FILE.npy is missing", flag));
  const InputArray file(path, NpyOptions{.void2_is_bf16 = flags.dtype == "bf16"});
  if (file.type() == DataType::kI64) {
    refuse(fmt::format("{} contains integers; it must be f32, f64, f16 or bf16", path));
  }
  if (!flags.dtype.empty() && float_type_from(flags.dtype) != file.type()) {
    refuse(fmt::format("{} contains {}, but --dtype is {}", path, name_of(file.type()), flags.dtype));
  }
  const int rank = axes.empty() ? file.shape().rank : static_cast<int>(axes.size());
  if (rank != file.shape().rank || rank < 2 || rank > 4) {
    refuse(fmt::format("{} has shape {}; it must be {}", path, to_string(file.shape()),
                       axes.empty() ? "[sequence, features], with heads and batch before" : axes));
  }
  return {load_array(file), axes.ends_with("shd")};
}

void write_array(ArrayOutput& output, const NpyArray& array, bool is_quiet) {
  output.begin("out", array.type, array.shape);
  output.write({reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()});
  output.publish(is_quiet);
}

NpyArray array_of(DataType type, const Extents& shape) {
  NpyArray array;
  array.type = type;
  array.shape = shape;
  array.bytes.resize(count_of(shape) * size_of(type));
  return array;
}

// The positions of all tokens, and their storage.
struct TokenPositions {
  PositionList list;
  std::vector<std::int64_t> ids;
  std::optional<Positions> positions;

  TokenPositions(const std::string& text, std::int64_t tokens, std::string_view flag, int axes) {
    if (text.empty()) {
      if (axes == 1) return;
      refuse(fmt::format(
          "{0}: the scheme needs positions with {1} axes, as @ids.npy of shape [{1}, {2}], or 0:{2} for text", flag,
          axes, tokens));
    }
    list = positions_from(text, flag);
    if (list.count != tokens) refuse(fmt::format("{}: {} positions for {} tokens", flag, list.count, tokens));
    positions = slice(list, 0, list.count, ids);
  }
};

// Vectors that a scheme takes from files; missing ones are reported by their flag.
void require_vectors(const Scheme& scheme, const PrepareOptions& prepare_options) {
  const TrainedTable table = trained_table_of(scheme);
  if (!has_vectors(table)) return;
  std::string shape;  // "129, features"
  for (const auto& [name, extent] : table.axes) {
    shape += (shape.empty() ? "" : ", ") + (extent == kAnyExtent ? std::string(name) : std::to_string(extent));
  }
  const auto require = [&](bool is_needed, const ConstTensorView& given, std::string_view what,
                           std::string_view flag) {
    if (!is_needed || given.data != nullptr) return;
    refuse(fmt::format("{}: the trained {} [{}] are missing ({} FILE.npy)", name_of(scheme), what, shape, flag));
  };
  require(!table.is_optional, prepare_options.weights, "vectors", "--vectors");
  require(table.has_key_weights, prepare_options.key_weights, "vectors for keys", "--key-vectors");
  require(table.has_value_weights, prepare_options.value_weights, "vectors for values", "--value-vectors");
}

// What a form needs beside q, k and v, reported by its flag if missing.
void require_further_inputs(std::string_view scheme, const AttentionOptions& options) {
  const auto* const bias = std::get_if<Bias>(&options.position);
  if (bias == nullptr) return;
  const BiasInputs inputs = inputs_of(*bias);
  if (inputs.position_queries && options.position_queries.data == nullptr) {
    refuse(fmt::format("{}: the queries of its vectors are missing (--position-queries FILE.npy)", scheme));
  }
  if (inputs.log_gates && options.log_gates.data == nullptr) {
    refuse(fmt::format("{}: the logarithms of its gates are missing (--log-gates FILE.npy)", scheme));
  }
}

// --round-rotated needs something to round.
void refuse_what_is_not_rounded(std::string_view scheme, const Form& form, const std::string& path, DataType type) {
  if (!std::holds_alternative<Rotation>(form)) {
    refuse(fmt::format("--round-rotated: {} does not rotate q and k", scheme));
  }
  if (type == DataType::kF16 || type == DataType::kBF16) return;
  refuse(fmt::format("{} contains {}; --round-rotated needs f16 or bf16", path, name_of(type)));
}

void check_axes(const std::string& axes) {
  for (const std::string_view known : {"", "bhsd", "bshd", "hsd", "shd", "sd"}) {
    if (axes == known) return;
  }
  refuse(fmt::format("--axes: '{}' is not one of bhsd, bshd, hsd, shd, sd", axes));
}

// The scheme's fields follow the tensors unless they are given.
void follow_tensors(const AttendFlags& flags, SchemeRequest& request, const ConstTensorView& queries) {
  follow_file(request, "heads", queries.shape.rank > 2 ? queries.shape.back(2) : 1, flags.q);
  if (const auto dims = integer_field(request.scheme, "dims");
      dims.has_value() && std::find(request.given.begin(), request.given.end(), "dims") == request.given.end()) {
    follow_file(request, "dims", queries.shape.back(0), flags.q);
  }
}

// The arrays that a scheme or a model takes from files, and options that refer to them.
struct FurtherInputs {
  NpyArray weights, vectors, key_vectors, value_vectors, sinks, log_gates;
  std::optional<Input> position_queries;
  PrepareOptions prepare_options;

  FurtherInputs(const AttendFlags& flags, SchemeRequest& request, std::int64_t length) {
    const NpyOptions types{.void2_is_bf16 = flags.dtype == "bf16"};
    const auto read = [&](const std::string& path, NpyArray& array) -> ConstTensorView {
      if (path.empty()) return {};
      array = load_array(InputArray(path, types));
      if (array.bytes.empty()) refuse(fmt::format("{}: shape {} has no numbers", path, to_string(array.shape)));
      return array.view();
    };
    weights = read_weights(request, types);
    prepare_options.numerics = numerics_from(flags.numerics);
    prepare_options.length = flags.length.value_or(length);
    if (!weights.bytes.empty()) prepare_options.weights = weights.view();
    if (!flags.vectors.empty()) prepare_options.weights = read(flags.vectors, vectors);
    prepare_options.key_weights = read(flags.key_vectors, key_vectors);
    prepare_options.value_weights = read(flags.value_vectors, value_vectors);
    require_vectors(request.scheme, prepare_options);
    read(flags.sinks, sinks);
    read(flags.log_gates, log_gates);
    if (!flags.position_queries.empty()) {
      position_queries = read_input("--position-queries", flags.position_queries, request.axes_of_x, flags);
    }
  }
  static ConstTensorView view(const NpyArray& array) {
    return array.bytes.empty() ? ConstTensorView{} : ConstTensorView(array.view());
  }
};

// The options of the scheme, or of the model's layer, and then of the flags.
AttentionOptions options_of(const AttendFlags& flags, const SchemeRequest& request, std::optional<LayerGroup>& layers,
                            const FurtherInputs& inputs, DataType type) {
  AttentionOptions options;
  if (layers) {
    layers->scheme = request.scheme;
    const PreparedLayer made =
        prepare(*layers, {.prepare = inputs.prepare_options,
                          .sinks = FurtherInputs::view(inputs.sinks),
                          .causal = layers->is_causal ? std::nullopt : std::optional(flags.causal)});
    options = made.attention;
    if (!flags.quiet && (made.addition || !made.notes.empty())) {
      tell(fmt::format("note: {}: position is added to the embeddings (posenc apply), not in attention",
                       flags.model.path));
    }
  } else {
    options.position = prepare(request.scheme, inputs.prepare_options);
    options.sinks = FurtherInputs::view(inputs.sinks);
  }
  if (inputs.position_queries) options.position_queries = inputs.position_queries->view();
  options.log_gates = FurtherInputs::view(inputs.log_gates);
  require_further_inputs(name_of(request.scheme), options);
  options.causal = options.causal || flags.causal;
  if (flags.rounds_rotated) {
    refuse_what_is_not_rounded(name_of(request.scheme), options.position, flags.q, type);
    options.rounds_rotated = true;
  }
  if (flags.window) options.window = *flags.window;
  if (flags.scale) options.scale = *flags.scale;
  return options;
}

int run(const AttendFlags& flags, SchemeRequest& request) {
  use_engine(flags.engine);
  const std::string& axes = request.axes_of_x;
  check_axes(axes);
  const Input q = read_input("--q", flags.q, axes, flags), k = read_input("--k", flags.k, axes, flags),
              v = read_input("--v", flags.v, axes, flags);
  if (flags.output.empty()) refuse("attend: the output is missing (-o OUT.npy)");
  std::optional<LayerGroup> layers;
  if (!flags.model.path.empty()) layers = take_model(flags.model, request, "attend", flags.quiet);
  const ConstTensorView queries = q.view(), keys = k.view();
  if (backend() == "cuda" && (queries.type == DataType::kF64 || keys.type != queries.type)) {
    refuse(fmt::format(
        "{} contains {} and {} {}, but cuda has attention for one type, f32, f16 or bf16 (--backend cpu has it for all)",
        flags.q, name_of(queries.type), flags.k, name_of(keys.type)));
  }
  follow_tensors(flags, request, queries);
  const FurtherInputs inputs(flags, request, std::max(queries.shape.back(1), keys.shape.back(1)));
  AttentionOptions options = options_of(flags, request, layers, inputs, queries.type);
  const int position_axes = position_axes_of(options.position), rank = queries.shape.rank;
  const TokenPositions q_positions(flags.q_positions, queries.shape.back(1), "--q-positions", position_axes),
      k_positions(flags.k_positions, keys.shape.back(1), "--k-positions", position_axes);
  options.query_positions = q_positions.positions;
  options.key_positions = k_positions.positions;

  if (flags.weights == "-" || flags.weights == flags.output) refuse("--weights: needs a different file than -o");
  ArrayOutput output(flags.output, flags.force, ArrayFiles::kNpy);
  std::optional<ArrayOutput> weights_output;
  if (!flags.weights.empty()) weights_output.emplace(flags.weights, flags.force, ArrayFiles::kNpy);
  Extents shape = q.array.shape;
  shape[rank - 1] = v.array.shape.back(0);
  Input out{array_of(q.array.type, shape), q.is_swapped};
  TensorView result = out.array.view();
  if (out.is_swapped) result = swap_axes(result, rank - 3, rank - 2);
  NpyArray weights;
  if (weights_output) {
    Extents weights_shape = queries.shape;
    weights_shape[rank - 1] = keys.shape.back(1);
    weights = array_of(q.array.type, weights_shape);
    options.weights = weights.view();
  }
  attention(result, queries, keys, v.view(), options);
  write_array(output, out.array, flags.quiet);
  if (weights_output) write_array(*weights_output, weights, flags.quiet);
  return kDone;
}

}  // namespace

Verb attend_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme) {
  Verb verb;
  verb.name = "attend";
  verb.summary = "compute attention with position: softmax(q.k + bias) v";
  verb.usage = "SCHEME|--model PATH --q Q.npy --k K.npy --v V.npy -o OUT.npy [options]";
  verb.details =
      "q, k and v are [sequence, features], preceded by heads and batch or as --axes says, in f32, f64, f16 or bf16; "
      "sums are computed in f32 (f64 for f64). Rotations rotate q and k, and biases are added to the scores. A "
      "scheme that adds to embeddings is rejected: use apply before q and k are computed. The queries are the last "
      "tokens of the keys, so one query and a cache are a decoding step. A query that can attend to no key gives zeros.";
  verb.examples =
      "posenc attend rope --q q.npy --k k.npy --v v.npy -o out.npy --causal\n"
      "posenc attend --model config.json --q q.npy --k k.npy --v v.npy -o out.npy --causal\n"
      "posenc attend alibi --q q.npy --k k.npy --v v.npy -o out.npy --causal --weights weights.npy\n"
      "posenc attend t5 --table t5.npy --scale 1 --q q.npy --k k.npy --v v.npy -o out.npy --axes hsd";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<AttendFlags>();
  add_flags(verb.command, *flags, scheme->axes_of_x);
  add_table_flag(verb.command, scheme);
  add_scheme_commands(verb.command, scheme);
  verb.checks_words = true;
  verb.run = [flags, scheme, verb] {
    const std::vector<std::string> leftovers = verb.command.remaining();
    if (flags->model.path.empty()) require_scheme(verb, *scheme, leftovers.empty() ? "" : leftovers.front());
    refuse_leftovers(verb.command);
    return run(*flags, *scheme);
  };
  return verb;
}

}  // namespace posenc::cli
