#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/arrays/array_output.h"
#include "cli/arrays/input_array.h"
#include "cli/arrays/numbers.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/verbs/verbs.h"
#include "posenc/error.h"
#include "posenc/json.h"
#include "posenc/mrope.h"
#include "posenc/position_check.h"
#include "posenc/positions.h"

namespace posenc::cli {
namespace {

constexpr std::int64_t kMostIds = std::int64_t{1} << 27;  // 1 GiB of them: more is a typing mistake

struct PositionsFlags {
  std::string mask, lengths, grid, spec, random, output, check, boundaries;
  std::string family = "qwen2-vl";
  std::string rule = "cumulative";
  std::int64_t padding = MaskOptions{}.padding, first = 0, merge = MropeOptions{}.merge, seed = 1;
  std::optional<std::int64_t> rate;
  bool centred = false, json = false, force = false, quiet = false;
};

struct Ids {
  Extents shape;
  std::vector<std::int64_t> values;
};

std::vector<std::int64_t> list_from(std::string_view text, std::string_view flag) {
  std::vector<std::int64_t> values;
  while (true) {
    const std::size_t comma = text.find(',');
    values.push_back(integer_from(text.substr(0, comma), flag));
    if (values.back() < 0) refuse(fmt::format("{}: {} is negative", flag, values.back()));
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

void check_count(std::int64_t count, std::string_view flag) {
  if (count >= 0 && count <= kMostIds) return;
  refuse(fmt::format("{}: more than {} positions", flag, kMostIds));
}

std::span<const std::int64_t> integers_of(const NpyArray& array) {
  return {reinterpret_cast<const std::int64_t*>(array.bytes.data()), array.bytes.size() / sizeof(std::int64_t)};
}

NpyArray mask_from(const PositionsFlags& flags) {
  NpyArray mask = load_array(InputArray(flags.mask));
  if (mask.type != DataType::kI64) refuse(fmt::format("{}: a mask must contain integers, 1 for a token", flags.mask));
  if (mask.shape.rank < 1 || mask.shape.rank > 2) {
    refuse(
        fmt::format("{} has shape {}; a mask is [sequence] or [batch, sequence]", flags.mask, to_string(mask.shape)));
  }
  for (const std::int64_t value : integers_of(mask)) {
    if (value != 0 && value != 1)
      refuse(fmt::format("{}: a mask must contain only 0 and 1, but contains {}", flags.mask, value));
  }
  return mask;
}

MaskOptions mask_options(const PositionsFlags& flags, const NpyArray& mask) {
  return {.batch = mask.shape.rank == 2 ? mask.shape[0] : 1,
          .rule = flags.rule == "roberta" ? MaskRule::kRoberta : MaskRule::kCumulative,
          .padding = flags.padding};
}

Ids from_mask(const PositionsFlags& flags) {
  const NpyArray mask = mask_from(flags);
  return {mask.shape, positions_from_mask(integers_of(mask), mask_options(flags, mask))};
}

Ids from_lengths(const PositionsFlags& flags) {
  const std::vector<std::int64_t> lengths = list_from(flags.lengths, "--lengths");
  std::int64_t total = 0;
  for (const std::int64_t length : lengths) {
    check_count(length, "--lengths");
    check_count(total += length, "--lengths");
  }
  return {{total}, packed_positions(lengths)};
}

Ids from_grid(const PositionsFlags& flags) {
  const std::vector<std::int64_t> extents = list_from(flags.grid, "--grid");
  if (extents.size() > 3) refuse("--grid: needs one to three extents, e.g. T,H,W");
  std::int64_t total = 1;
  for (const std::int64_t extent : extents) {
    check_count(extent, "--grid");
    check_count(total *= extent, "--grid");
  }
  return {{static_cast<std::int64_t>(extents.size()), total},
          flags.centred ? centred_positions(extents) : grid_positions(extents)};
}

Ids from_random(const PositionsFlags& flags) {
  const std::vector<std::int64_t> numbers = list_from(flags.random, "--random");
  if (numbers.size() != 2) refuse("--random: needs two numbers, how many and below which, e.g. 40,500");
  check_count(numbers[0], "--random");
  if (numbers[1] < numbers[0] || numbers[1] > kPositionLimit) {
    refuse(fmt::format("--random: {} positions cannot differ below {}", numbers[0], numbers[1]));
  }
  return {{numbers[0]}, randomised_positions(numbers[0], numbers[1], static_cast<std::uint64_t>(flags.seed))};
}

Ids from_spec(const PositionsFlags& flags) {
  try {
    MropeFamily family = mrope_family(flags.family);
    if (flags.rate && family.rate == 0) {
      refuse(fmt::format("--rate: {} counts frames, not seconds", flags.family));
    }
    if (flags.rate) family.rate = *flags.rate;
    const MropeOptions options{.merge = flags.merge,
                               .advance = family.advance,
                               .rate = family.rate > 0 ? family.rate : MropeOptions{}.rate,
                               .chunk = 2 * (family.rate > 0 ? family.rate : MropeOptions{}.rate)};
    const std::vector<MropePiece> pieces = mrope_pieces(flags.spec, family);
    MropePositions made = mrope_positions(pieces, options);
    check_count(3 * made.tokens, "--spec");
    return {{3, made.tokens}, std::move(made.ids)};
  } catch (const Error& error) {
    // the flag replaces the library's name for it
    std::string_view text = error.what();
    if (text.starts_with("mrope: ")) text.remove_prefix(7);
    refuse(fmt::format("--spec: {}", text));
  }
}

// Text for other programs or --positions: one row per axis or sequence.
std::string as_text(const Ids& ids) {
  const std::int64_t columns = ids.shape.back(0);
  std::string text;
  for (std::size_t i = 0; i < ids.values.size(); ++i) {
    const bool is_last = (static_cast<std::int64_t>(i) + 1) % columns == 0;
    text += fmt::format("{}{}", ids.values[i], is_last ? "\n" : ",");
  }
  return text;
}

std::string as_json(const Ids& ids) {
  Json::Array shape, values(ids.values.begin(), ids.values.end());
  for (int axis = 0; axis < ids.shape.rank; ++axis) shape.emplace_back(ids.shape[axis]);
  return dump_json(Json::Object{{"shape", std::move(shape)}, {"positions", std::move(values)}}) + "\n";
}

void write_file(const PositionsFlags& flags, const Ids& ids) {
  output_format(flags.output, ArrayFiles::kNpyOrSafetensors);  // "-" is none
  ArrayOutput output(flags.output, flags.force, ArrayFiles::kNpyOrSafetensors);
  output.begin("positions", DataType::kI64, ids.shape);
  output.write({reinterpret_cast<const char*>(ids.values.data()), ids.values.size() * sizeof(std::int64_t)});
  output.publish(flags.quiet);
}

// The ends of packed sequences: a file, or a list.
std::vector<std::int64_t> boundaries_from(const PositionsFlags& flags) {
  const bool is_marked = flags.boundaries.starts_with('@');
  if (!is_marked && !flags.boundaries.ends_with(".npy")) return list_from(flags.boundaries, "--cu-seqlens");
  const std::string path = flags.boundaries.substr(is_marked ? 1 : 0);
  const NpyArray array = load_array(InputArray(path));
  if (array.type != DataType::kI64 || array.shape.rank != 1) {
    refuse(fmt::format("{}: boundaries are integers [sequences + 1]", path));
  }
  const std::span<const std::int64_t> values = integers_of(array);
  return {values.begin(), values.end()};
}

PositionCheck checked(const PositionsFlags& flags) {
  const NpyArray ids = load_array(InputArray(flags.check));
  if (ids.type != DataType::kI64) refuse(fmt::format("{}: position ids must be integers", flags.check));
  if (flags.mask.empty()) {
    if (ids.shape.rank != 1 && !(ids.shape.rank == 2 && ids.shape[0] == 1)) {
      refuse(fmt::format("{} has shape {}; ids of packed sequences are [tokens]", flags.check, to_string(ids.shape)));
    }
    return check_packed_positions(integers_of(ids), boundaries_from(flags));
  }
  const NpyArray mask = mask_from(flags);
  if (mask.shape != ids.shape) {
    refuse(fmt::format("{} has shape {}, but the mask {}", flags.check, to_string(ids.shape), to_string(mask.shape)));
  }
  return check_positions(integers_of(ids), integers_of(mask), mask_options(flags, mask));
}

Json check_json(const PositionCheck& check) {
  Json first = nullptr;
  if (check.first) {
    first = Json::Object{{"row", check.first->row},
                         {"token", check.first->token},
                         {"expected", check.first->expected},
                         {"got", check.first->got}};
  }
  return Json::Object{{"verdict", check.agrees()      ? "agrees"
                                  : check.tokens == 0 ? "inconclusive"
                                                      : "differs"},
                      {"tokens", check.tokens},
                      {"differing", check.differing},
                      {"first", std::move(first)},
                      {"cause", check.cause.empty() ? Json(nullptr) : Json(check.cause)},
                      {"untested", check.untested.empty() ? Json(nullptr) : Json(check.untested)}};
}

std::string check_text(const PositionCheck& check) {
  if (check.tokens == 0) return "inconclusive: there is no token\n";
  std::string text = check.agrees() ? fmt::format("agrees: {} tokens\n", check.tokens)
                                    : fmt::format("differs: {} of {} tokens\n", check.differing, check.tokens);
  if (check.first) {
    text += fmt::format("  first: row {}, token {}: expected {}, got {}\n", check.first->row, check.first->token,
                        check.first->expected, check.first->got);
  }
  if (!check.cause.empty()) text += fmt::format("  {}\n", check.cause);
  if (!check.untested.empty()) text += fmt::format("  not tested: {}\n", check.untested);
  return text;
}

int run_check(const PositionsFlags& flags) {
  if (flags.mask.empty() == flags.boundaries.empty()) refuse("--check: needs either --mask or --cu-seqlens");
  if (!flags.lengths.empty() || !flags.grid.empty() || !flags.spec.empty() || !flags.random.empty() ||
      !flags.output.empty()) {
    refuse("--check works only with --mask or --cu-seqlens");
  }
  try {
    const PositionCheck check = checked(flags);
    print(flags.json ? dump_json(check_json(check)) + "\n" : check_text(check));
    return check.agrees() ? kDone : kNo;
  } catch (const Error& error) {
    refuse(fmt::format("--check: {}", error.what()));
  }
}

int run(const PositionsFlags& flags) {
  if (!flags.check.empty()) return run_check(flags);
  if (!flags.boundaries.empty()) refuse("--cu-seqlens works only with --check");
  const int given = (flags.mask.empty() ? 0 : 1) + (flags.lengths.empty() ? 0 : 1) + (flags.grid.empty() ? 0 : 1) +
                    (flags.spec.empty() ? 0 : 1) + (flags.random.empty() ? 0 : 1);
  if (given != 1) refuse("positions: needs exactly one of --mask, --lengths, --grid, --spec and --random");
  if (flags.centred && flags.grid.empty()) refuse("--centred works only with --grid");
  Ids ids = !flags.mask.empty()      ? from_mask(flags)
            : !flags.lengths.empty() ? from_lengths(flags)
            : !flags.spec.empty()    ? from_spec(flags)
            : !flags.random.empty()  ? from_random(flags)
                                     : from_grid(flags);
  for (std::int64_t& id : ids.values) id += flags.first;
  if (!flags.output.empty() && flags.output != "-") {
    write_file(flags, ids);
    return kDone;
  }
  print(flags.json ? as_json(ids) : as_text(ids));
  return kDone;
}

}  // namespace

Verb positions_verb(Command program) {
  Verb verb;
  verb.name = "positions";
  verb.summary = "make position ids from masks, packed sequences, grids and mixed input";
  verb.usage = "--mask F|--lengths 5,3,8|--grid T,H,W|--spec S|--random N,L [-o F|--check F]";
  verb.details =
      "Prints one line per sequence or axis, or writes a file for --positions @FILE. With a mask, counts tokens and "
      "skips padding; packed sequences each start at 0; a grid has one line per axis, its points in row order. --spec takes "
      "a prompt of a multimodal model: text:N, image:ROWSxCOLUMNS, video:FRAMESxROWSxCOLUMNS@SECONDS and audio:N, "
      "divided by spaces, extents in patches before they are merged; it prints time, height and width (M-RoPE). --check "
      "compares ids that a program made with its mask, or with the boundaries of its packed sequences, and names what went "
      "wrong (padding counted, no restart); it exits with 1 if they differ.";
  verb.examples =
      "posenc positions --lengths 5,3,8\n"
      "posenc positions --grid 2,3,4 -o thw.npy\n"
      "posenc positions --mask mask.npy --rule roberta\n"
      "posenc positions --check ids.npy --mask mask.npy\n"
      "posenc positions --check ids.npy --cu-seqlens 0,5,8\n"
      "posenc positions --grid 14,14 --centred\n"
      "posenc positions --random 40,500 --seed 7\n"
      "posenc positions --family qwen2.5-vl --spec 'text:5 image:4x6 text:3 video:3x4x4@1 text:4'";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<PositionsFlags>();
  verb.command
      .add_option("--mask", flags->mask, "integers [sequence] or [batch, sequence]: 1 for a token, 0 for padding")
      .type_name("FILE");
  verb.command.add_option("--check", flags->check, "compare these ids with --mask or --cu-seqlens").type_name("FILE");
  verb.command
      .add_option("--cu-seqlens", flags->boundaries,
                  "for --check: where packed sequences end, from 0 on: a list, or a .npy file")
      .type_name("N,N,…");
  verb.command.add_option("--lengths", flags->lengths, "lengths of the packed sequences").type_name("N,N,…");
  verb.command.add_option("--grid", flags->grid, "extents of an image or video: H,W or T,H,W").type_name("T,H,W");
  verb.command.add_flag("--centred", flags->centred, "for --grid: 2i + 1 - N instead of i (patch-rope)");
  verb.command
      .add_option("--random", flags->random,
                  "N different positions below L, sorted (randomised positional encodings)")
      .type_name("N,L");
  verb.command.add_integer("--seed", flags->seed, {0, kPositionLimit}, "for --random");
  verb.command.add_option("--spec", flags->spec, "text:N image:RxC video:TxRxC@SECONDS audio:N …, in quotes")
      .type_name("PIECES");
  std::vector<std::string_view> families;
  for (const MropeFamily& family : mrope_families()) families.push_back(family.name);
  verb.command.add_choice("--family", flags->family, families, "for --spec: whose rules count");
  verb.command.add_integer("--merge", flags->merge, {1, 64}, "for --spec: patches a side of one token");
  verb.command.add_integer("--rate", flags->rate, {1, 1 << 20},
                           "for --spec: positions a second (default: 2 for qwen2.5-vl, 25 for qwen2.5-omni)");
  verb.command.add_choice("--rule", flags->rule, {"cumulative", "roberta"},
                          "for a mask: cumulative (first token 0) or roberta (first token --padding + 1)");
  verb.command.add_integer("--padding", flags->padding, {}, "position of padding");
  verb.command.add_integer("--first", flags->first, {0, kPositionLimit - kMostIds}, "added to every position");
  verb.command.add_option("-o,--output", flags->output, "a .npy or .safetensors file of int64").type_name("FILE");
  verb.command.add_flag("--json", flags->json, "print one JSON document with shape and positions");
  verb.command.add_flag("--force", flags->force, "replace FILE if it exists");
  verb.command.add_flag("--quiet", flags->quiet, "print only errors");
  verb.run = [flags] { return run(*flags); };
  return verb;
}

}  // namespace posenc::cli
