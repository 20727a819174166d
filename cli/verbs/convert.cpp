#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "cli/arrays/array_name.h"
#include "cli/arrays/array_output.h"
#include "cli/arrays/elements.h"
#include "cli/arrays/input_array.h"
#include "cli/flags/type_flags.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/verbs/verbs.h"
#include "posenc/apply.h"
#include "posenc/json.h"
#include "posenc/random.h"

namespace posenc::cli {
namespace {

struct ConvertFlags {
  std::string input, output, to, dtype;
  std::optional<std::int64_t> heads, rotary_dims;
  std::int64_t first_dim = 0;
  bool force = false, quiet = false, json = false;
};

// Rows of a query or key projection: heads × features of a head, of which `dims` rotate, from `first` on.
struct Rows {
  std::int64_t heads = 1, features = 0, dims = 0, first = 0, columns = 1;
  bool to_halves = true;

  /// The input row that goes to `row` of a head in the output.
  std::int64_t source(std::int64_t row) const {
    const std::int64_t at = row - first, half = dims / 2;
    if (at < 0 || at >= dims) return row;
    if (to_halves) return first + (at < half ? 2 * at : 2 * (at - half) + 1);
    return first + (at % 2 == 0 ? at / 2 : half + at / 2);
  }
};

Rows rows_of(const ConvertFlags& flags, const Extents& shape) {
  Rows rows;
  rows.to_halves = flags.to == "halves";
  rows.heads = *flags.heads;
  if (shape.rank < 1 || shape.rank > 2) {
    refuse(fmt::format("{} has shape {}; a projection is [heads * features, inputs], its bias [heads * features]",
                       flags.input, to_string(shape)));
  }
  if (shape[0] == 0 || shape[0] % rows.heads != 0) {
    refuse(fmt::format("{} has {} rows, which cannot be divided among {} heads", flags.input, shape[0], rows.heads));
  }
  rows.features = shape[0] / rows.heads;
  rows.columns = shape.rank == 2 ? shape[1] : 1;
  rows.dims = flags.rotary_dims.value_or(rows.features);
  if (rows.dims % 2 != 0 || rows.dims > rows.features) {
    refuse(fmt::format("--rotary-dims: must be even and at most {}, the features per head, but is {}", rows.features,
                       rows.dims));
  }
  rows.first = flags.first_dim;
  if (rows.first < 0) rows.first += rows.features;
  if (rows.first < 0 || rows.first + rows.dims > rows.features) {
    refuse(fmt::format("--first-dim: {} rotary dimensions from feature {} exceed a head of {} features", rows.dims,
                       flags.first_dim, rows.features));
  }
  return rows;
}

std::vector<std::byte> permuted(const NpyArray& in, const Rows& rows) {
  std::vector<std::byte> out(in.bytes.size());
  const std::size_t row_bytes = rows.columns * size_of(in.type);
  if (row_bytes == 0) return out;
  for (std::int64_t head = 0; head < rows.heads; ++head) {
    for (std::int64_t row = 0; row < rows.features; ++row) {
      const std::size_t to = (head * rows.features + row) * row_bytes;
      const std::size_t from = (head * rows.features + rows.source(row)) * row_bytes;
      std::memcpy(out.data() + to, in.bytes.data() + from, row_bytes);
    }
  }
  return out;
}

// The output of the projection for an input: [heads, 1, features].
std::vector<double> projected(const std::byte* weights, DataType type, const Rows& rows,
                              const std::vector<double>& x) {
  std::vector<double> out(rows.heads * rows.features);
  for (std::size_t row = 0; row < out.size(); ++row) {
    for (std::int64_t column = 0; column < rows.columns; ++column) {
      const auto index = static_cast<std::int64_t>(row) * rows.columns + column;
      out[row] += element_at(weights, type, index) * x[column];
    }
  }
  return out;
}

struct Scores {
  std::vector<double> of_head;
  double scale = 0;  // of the largest
};

// Scores of a query at position 1000 and a key at 7, for each head, both from these weights.
Scores scores_of(const std::byte* weights, DataType type, const Rows& rows, PairLayout layout) {
  Random random(1);
  std::vector<double> x(rows.columns), y(x.size());
  for (double& value : x) value = random.uniform();
  for (double& value : y) value = random.uniform();
  std::vector<double> q = projected(weights, type, rows, x), k = projected(weights, type, rows, y);
  const Rotation form = prepare(Rope{.dims = rows.dims, .layout = layout, .first_dim = rows.first});
  const Extents shape{rows.heads, 1, rows.features};
  rotate(view(q.data(), shape), {.first = 1000}, form);
  rotate(view(k.data(), shape), {.first = 7}, form);
  Scores scores;
  for (std::int64_t head = 0; head < rows.heads; ++head) {
    double sum = 0, size = 0;
    for (std::int64_t i = 0; i < rows.features; ++i) {
      const std::size_t at = head * rows.features + i;
      sum += q[at] * k[at];
      size += std::fabs(q[at] * k[at]);
    }
    scores.of_head.push_back(sum);
    scores.scale = std::max(scores.scale, size);
  }
  return scores;
}

// Both weights, each rotated in its own layout, must give the same scores. Returns the largest difference.
double prove(const NpyArray& before, const std::vector<std::byte>& after, const Rows& rows, const std::string& name) {
  const PairLayout from = rows.to_halves ? PairLayout::kInterleaved : PairLayout::kHalves;
  const PairLayout to = rows.to_halves ? PairLayout::kHalves : PairLayout::kInterleaved;
  const Scores one = scores_of(before.bytes.data(), before.type, rows, from);
  const Scores other = scores_of(after.data(), before.type, rows, to);
  double largest = 0;
  for (std::size_t head = 0; head < one.of_head.size(); ++head) {
    const double difference = std::fabs(one.of_head[head] - other.of_head[head]);
    if (!std::isfinite(difference)) refuse(fmt::format("{} contains numbers that are not finite", name));
    largest = std::max(largest, difference);
  }
  if (largest > 1e-12 * one.scale) {
    throw Failure{kNo, fmt::format("{}: scores before and after conversion differ by {:.3g}; nothing was written",
                                   name, largest)};
  }
  return largest;
}

int run(const ConvertFlags& flags) {
  if (flags.input.empty()) refuse("convert: the input is missing (posenc convert IN -o OUT --to halves --heads 32)");
  if (flags.output.empty()) refuse("convert: the output is missing (-o OUT)");
  if (flags.to.empty()) refuse("convert: --to is missing (interleaved or halves)");
  if (!flags.heads) refuse("convert: --heads is missing (key heads for a key projection)");
  output_format(flags.output, ArrayFiles::kNpyOrSafetensors);
  const InputArray input(flags.input, NpyOptions{.void2_is_bf16 = flags.dtype == "bf16"});
  if (!flags.dtype.empty() && float_type_from(flags.dtype) != input.type()) {
    refuse(fmt::format("{} contains {}, but --dtype is {}", input.path(), name_of(input.type()), flags.dtype));
  }
  if (input.type() == DataType::kI64) refuse(fmt::format("{} contains integers, not weights", input.path()));
  refuse_same_file(input, flags.output, flags.force);
  const Rows rows = rows_of(flags, input.shape());
  ArrayOutput output(flags.output, flags.force, ArrayFiles::kNpyOrSafetensors);
  const NpyArray before = load_array(input);
  const std::vector<std::byte> after = permuted(before, rows);
  const double difference = prove(before, after, rows, input.path());

  output.begin(array_name_from(flags.input).name.value_or("out"), before.type, before.shape);
  output.write({reinterpret_cast<const char*>(after.data()), after.size()});
  output.publish(flags.quiet || flags.json,
                 fmt::format(", {}; scores before and after differ by {:.2g}", flags.to, difference));
  if (flags.json) {
    print(dump_json(Json::Object{{"output", flags.output},
                                 {"layout", flags.to},
                                 {"heads", rows.heads},
                                 {"features", rows.features},
                                 {"rotary_dims", rows.dims},
                                 {"max_score_difference", difference}}) +
          "\n");
  }
  return kDone;
}

}  // namespace

Verb convert_verb(Command program) {
  Verb verb;
  verb.name = "convert";
  verb.summary = "convert query and key weights between pair layouts";
  verb.usage = "IN -o OUT --to interleaved|halves --heads H [--rotary-dims d]";
  verb.details =
      "IN is the weight of a query or key projection, [heads * features, inputs], or its bias, [heads * features], "
      "in the other layout. Its rows are permuted within each head; with --rotary-dims only the rotary rows. Before "
      "anything is written, both weights are applied to random inputs and rotated, each in its own layout: the "
      "scores must agree.";
  verb.examples =
      "posenc convert wq.npy -o wq_halves.npy --to halves --heads 8\n"
      "posenc convert wk.npy -o wk_halves.npy --to halves --heads 2 --rotary-dims 4";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<ConvertFlags>();
  Command command = verb.command;
  command.add_option("IN", flags->input);
  command.add_option("-o,--output", flags->output, "a .npy or .safetensors file").type_name("FILE");
  command.add_choice("--to", flags->to, {"interleaved", "halves"}, "target layout: interleaved or halves");
  command
      .add_integer("--heads", flags->heads, {.least = 1},
                   "heads in IN: for a key projection, the number of key heads")
      .type_name("H");
  command.add_integer("--rotary-dims", flags->rotary_dims, {.least = 1}, "rotary dimensions per head (default: all)");
  command.add_integer("--first-dim", flags->first_dim, {},
                      "first rotary dimension; negative: counted from the end of the head");
  add_dtype_flag(command, flags->dtype, "IN");
  command.add_flag("--json", flags->json, "print one JSON document about the conversion");
  command.add_flag("--force", flags->force, "replace FILE if it exists");
  command.add_flag("--quiet", flags->quiet, "print only errors");
  verb.run = [flags] { return run(*flags); };
  return verb;
}

}  // namespace posenc::cli
