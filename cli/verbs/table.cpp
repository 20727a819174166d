#include <fmt/format.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cli/arrays/array_output.h"
#include "cli/arrays/elements.h"
#include "cli/arrays/numbers.h"
#include "cli/arrays/table_stream.h"
#include "cli/arrays/table_text.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/length_flag.h"
#include "cli/flags/type_flags.h"
#include "cli/system/failure.h"
#include "cli/system/output_file.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/table_bias.h"
#include "cli/verbs/table_rotation.h"
#include "cli/verbs/verbs.h"

namespace posenc::cli {
namespace {

struct TableFlags {
  std::string positions, grid, queries, keys;
  std::string output, format;
  std::string dtype = "f32", numerics = "exact";
  std::string max_bytes = "64GiB";
  std::int64_t digits = 3, head = 0;
  std::optional<std::int64_t> length;
  bool json = false, quiet = false, force = false;
  EngineFlags engine;
};

void add_flags(Command verb, TableFlags& flags) {
  verb.add_option("--positions", flags.positions,
                  "positions: 8 (one), 0:8 (0 to 7), 0:4096:64 (every 64th), 0,1,5 (a list), -1:1:1/8 (also "
                  "negative and fractions), @ids.npy (int64, [n] or [axes, n])")
      .type_name("P");
  verb.add_option("--grid", flags.grid, "for schemes with axes: every point of a grid, row by row, e.g. 14,14")
      .type_name("H,W");
  verb.add_option("--queries", flags.queries, "for biases: positions of the queries").type_name("P");
  verb.add_option("--keys", flags.keys, "for biases: positions of the keys (default: those of the queries)")
      .type_name("P");
  verb.add_option("-o,--output", flags.output,
                  "write .npy, .safetensors, .csv or .json; - for standard output (default: print a table)")
      .type_name("FILE");
  verb.add_choice("--format", flags.format, {"npy", "safetensors", "csv", "json"}, "what -o - writes")
      .default_value("npy");
  verb.add_flag("--json", flags.json, "print one JSON document and nothing else");
  verb.add_choice("--dtype", flags.dtype, float_type_names(), "type of the values").type_name("TYPE");
  add_numerics_flag(verb, flags.numerics);
  add_length_flag(verb, flags.length);
  verb.add_integer("--head", flags.head, {0, 65535},
                   "the head to tabulate, for schemes whose rotation differs from head to head");
  constexpr std::int64_t kMostDigits = 60;
  verb.add_integer("--digits", flags.digits, {0, kMostDigits}, "digits after the decimal point in the printed table");
  verb.add_option("--max-bytes", flags.max_bytes, "refuse a larger table")
      .type_name("SIZE")
      .default_value(flags.max_bytes);
  verb.add_flag("--force", flags.force, "replace FILE if it exists");
  verb.add_flag("--quiet", flags.quiet, "print only errors, no messages and no progress bar");
  add_engine_flags(verb, flags.engine);
}

bool goes_to_stdout(const TableFlags& flags) { return flags.json || flags.output == "-"; }

TableFormat table_format_named(std::string_view name, std::string_view what) {
  if (name == "npy") return TableFormat::kNpy;
  if (name == "safetensors") return TableFormat::kSafetensors;
  if (name == "csv") return TableFormat::kCsv;
  if (name == "json") return TableFormat::kJson;
  refuse(fmt::format("{}: '{}' is not one of npy, safetensors, csv, json", what, name));
}

// Nothing if the output is for people.
std::optional<TableFormat> table_format_of(const TableFlags& flags) {
  if (flags.json) {
    if (!flags.output.empty()) refuse("--json prints to standard output; to write a file, use -o FILE.json alone");
    return TableFormat::kJson;
  }
  if (flags.output.empty()) {
    if (!flags.format.empty()) refuse("--format works only with -o -");
    return std::nullopt;
  }
  if (flags.output == "-") {
    const TableFormat format =
        flags.format.empty() ? TableFormat::kNpy : table_format_named(flags.format, "--format");
    if (is_binary(format)) refuse_terminal(", or use --format csv");
    return format;
  }
  if (!flags.format.empty()) refuse("--format works only with -o -; the format of a file follows from its name");
  const std::size_t dot = flags.output.rfind('.');
  const std::size_t slash = flags.output.rfind('/');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) {
    refuse(fmt::format("{}: the output must end in .npy, .safetensors, .csv or .json", flags.output));
  }
  for (const std::string_view known : {"npy", "safetensors", "csv", "json"}) {
    if (flags.output.substr(dot + 1) == known) return table_format_named(known, "-o");
  }
  refuse(fmt::format("{}: the output must be .npy, .safetensors, .csv or .json, not {}", flags.output,
                     flags.output.substr(dot)));
}

PositionList positions_of(const TableFlags& flags) {
  if (!flags.positions.empty() && !flags.grid.empty()) refuse("--positions and --grid cannot be combined");
  if (!flags.grid.empty()) return positions_of_grid(flags.grid);
  if (flags.positions.empty()) refuse("table: the positions are missing, e.g. --positions 0:8");
  return signed_positions_from(flags.positions);
}

// Before anything is computed: even the frequencies of a million columns take time.
void refuse_too_large(const Scheme& scheme, const PositionList& positions, DataType type, TableFormat format,
                      std::int64_t limit) {
  const auto dims = integer_field(scheme, "dims");  // of a rotation: half of them cosines, half sines
  const auto width = dims ? dims : integer_field(scheme, "width");
  if (!width || *width < 1) return;  // reported elsewhere
  const double bytes = table_bytes(static_cast<double>(positions.count), static_cast<double>(*width), type, format);
  if (bytes <= static_cast<double>(limit)) return;
  const std::string shape =
      dims ? fmt::format("2 x {} x {}", positions.count, *dims / 2) : fmt::format("{} x {}", positions.count, *width);
  refuse(fmt::format("table of {} {} needs {}; limit is {} (--max-bytes)", shape, spoken_name(type), in_bytes(bytes),
                     in_bytes(static_cast<double>(limit))));
}

// A table of any form, yet to be computed: its shape in a .npy, and two ways to show it.
struct Table {
  Extents shape;
  TableSource source;
  std::function<void()> try_ends = [] {};  // errors there occur before anything is written
  std::function<std::string()> text;
};

Table table_of(TableJob job, int digits) {
  check_axes(name_of(job.scheme), position_axes_of(job.form), job.positions);
  const auto shared = std::make_shared<const TableJob>(std::move(job));
  return {{shared->positions.count, shared->form.width},
          source_of(*shared),
          [=] { try_largest(shared->form, shared->positions); },
          [=] { return table_text(*shared, digits, output_columns(), wants_colour(STDOUT_FILENO)); }};
}

Table table_of(RotationTableJob job, int digits) {
  check_axes(name_of(job.scheme), position_axes_of(job.form), job.positions);
  const auto shared = std::make_shared<const RotationTableJob>(std::move(job));
  return {shared->shape(), source_of(*shared), [=] { try_ends(shared->form, shared->positions); },
          [=] { return rotation_table_text(*shared, digits, output_columns(), wants_colour(STDOUT_FILENO)); }};
}

Table table_of(BiasTableJob job, int digits) {
  const auto shared = std::make_shared<const BiasTableJob>(std::move(job));
  return {shape_of(*shared), source_of(*shared), [] {},
          [=] { return bias_table_text(*shared, digits, output_columns(), wants_colour(STDOUT_FILENO)); }};
}

void write_file(const Table& table, TableFormat format, const TableFlags& flags, OutputFile& file) {
  const std::int64_t data_bytes = count_of(table.shape) * size_of(table.source.type);
  if (is_binary(format)) file.reserve(static_cast<std::int64_t>(table.source.head(format).size()) + data_bytes);
  write_table(
      table.source, format, [&](std::string_view bytes) { file.write(bytes); }, !flags.quiet);
  file.publish();
  if (flags.quiet) return;
  tell(fmt::format("wrote {}: {} {}", flags.output, to_string(table.shape), name_of(table.source.type)));
}

// To the file, to standard output, or as text for people.
int show(const Table& table, std::optional<TableFormat> format, const TableFlags& flags,
         std::optional<OutputFile>& file) {
  if (!format) {
    print(table.text());
    return kDone;
  }
  table.try_ends();
  if (file) {
    write_file(table, *format, flags, *file);
  } else {
    write_table(table.source, *format, print, !flags.quiet);
  }
  return kDone;
}

// The positions of queries and keys. A grid applies to both.
BiasTableJob bias_job_of(const TableFlags& flags, const Scheme& scheme) {
  const std::string_view name = name_of(scheme);
  BiasTableJob job;
  if (!flags.positions.empty())
    refuse(fmt::format("{} is a bias and takes --queries and --keys, not --positions", name));
  if (!flags.grid.empty()) {
    if (!flags.queries.empty() || !flags.keys.empty()) refuse("--grid and --queries or --keys cannot be combined");
    job.queries = job.keys = positions_of_grid(flags.grid);
  } else {
    if (flags.queries.empty()) refuse(fmt::format("{}: the queries are missing, e.g. --queries 0:8", name));
    job.queries = positions_from(flags.queries, "--queries");
    job.keys = flags.keys.empty() ? job.queries : positions_from(flags.keys, "--keys");
  }
  job.scheme = scheme;
  job.type = float_type_from(flags.dtype);
  return job;
}

int run_bias(const TableFlags& flags, SchemeRequest& request, int digits, std::optional<TableFormat> format) {
  BiasTableJob job = bias_job_of(flags, request.scheme);
  refuse_vectors(request.scheme);
  const NpyArray weights = read_weights(request, {.void2_is_bf16 = job.type == DataType::kBF16});
  job.scheme = request.scheme;
  PrepareOptions options;
  options.numerics = numerics_from(flags.numerics);
  options.length = length_of(job);
  job.form = std::get<Bias>(form_of(request, options, weights));
  check_bias_job(job, format.value_or(TableFormat::kNpy), bytes_from(flags.max_bytes, "--max-bytes"));
  std::optional<OutputFile> file;
  if (format && !goes_to_stdout(flags)) file.emplace(output_target(flags.output, flags.force));
  return show(table_of(std::move(job), digits), format, flags, file);
}

int run(const TableFlags& flags, SchemeRequest& request) {
  use_engine(flags.engine);
  const int digits = static_cast<int>(flags.digits);
  const std::optional<TableFormat> format = table_format_of(flags);
  if (is_bias(request.scheme)) return run_bias(flags, request, digits, format);
  if (!flags.queries.empty() || !flags.keys.empty()) {
    refuse(fmt::format("{}: takes --positions; only biases take --queries and --keys", name_of(request.scheme)));
  }

  const DataType type = float_type_from(flags.dtype);
  PositionList positions = positions_of(flags);
  // raw bytes are bf16 if that was requested
  const NpyArray weights = read_weights(request, {.void2_is_bf16 = type == DataType::kBF16});
  refuse_too_large(request.scheme, positions, type, format.value_or(TableFormat::kNpy),
                   bytes_from(flags.max_bytes, "--max-bytes"));
  PrepareOptions options;
  options.numerics = numerics_from(flags.numerics);
  options.length = length_for(request.scheme, flags.length);
  if (positions.denominator != 1) options.denominators = {positions.denominator};
  std::optional<OutputFile> file;
  if (format && !goes_to_stdout(flags)) file.emplace(output_target(flags.output, flags.force));

  Form form = form_of(request, options, weights);
  Table table;
  if (auto* const addition = std::get_if<Addition>(&form)) {
    table = table_of(TableJob{request.scheme, std::move(*addition), std::move(positions), type}, digits);
  } else if (auto* const rotation = std::get_if<Rotation>(&form)) {
    const std::int64_t heads = heads_of(*rotation);
    if (flags.head >= heads) {
      refuse(fmt::format("--head: {} has {} head{}, from 0 on, but --head is {}", name_of(request.scheme), heads,
                         heads == 1 ? "" : "s", flags.head));
    }
    table = table_of(RotationTableJob{request.scheme, head_of(*rotation, flags.head), std::move(positions), type},
                     digits);
  } else {
    refuse(fmt::format("{} has no table, because it adds nothing", name_of(request.scheme)));
  }

  return show(table, format, flags, file);
}

}  // namespace

Verb table_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme) {
  Verb verb;
  verb.name = "table";
  verb.summary = "print or save a scheme's values: one row per position, or for biases per query";
  verb.usage = "SCHEME --positions P [options], or for biases --queries P --keys P";
  verb.details =
      "Sines and cosines are exact: correctly rounded in f32, f16 and bf16 at every position below 2^53 and bit-identical on every "
      "machine. A table of any length is written in pieces, and the file appears only when it is complete. SCHEME is "
      "a name or JSON, e.g. {\"scheme\":\"sinusoidal\",\"width\":4}.";
  verb.examples =
      "posenc table sinusoidal --width 4 --positions 0:4\n"
      "posenc table sinusoidal --width 512 --positions 0:4096 -o pe.npy\n"
      "posenc table sinusoidal --width 8 --positions 0,1,1000003 --digits 9 --numerics hf-f32\n"
      "posenc table sinusoidal --width 768 --axes 2 --grid 14,14 --layout sin-cos -o vit.npy\n"
      "posenc table rope --dims 8 --positions 0:4\n"
      "posenc table sinusoidal --width 8 --positions -1:1:1/4\n"
      "posenc table rope --scaling yarn:factor=4,original_length=32768 --positions 0:131072:4096 --json\n"
      "posenc table alibi --heads 8 --queries 0:6\n"
      "posenc table t5 --table t5.npy --queries 0:512 -o bias.npy\n"
      "posenc table '{\"scheme\":\"sinusoidal\",\"width\":4}' --positions 0:4 --json";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<TableFlags>();
  add_flags(verb.command, *flags);
  add_scheme_commands(verb.command, scheme);
  verb.checks_words = true;
  verb.run = [flags, scheme, verb] {
    const std::vector<std::string> words = verb.command.remaining();
    require_scheme(verb, *scheme, words.empty() ? "" : words.front());
    refuse_leftovers(verb.command);
    return run(*flags, *scheme);
  };
  return verb;
}

}  // namespace posenc::cli
