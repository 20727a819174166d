// Tables of a scheme and positions of tokens, as the program computes them, for the npm package.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "explorer/wasm/package.h"
#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/mrope.h"
#include "posenc/positions.h"
#include "posenc/scheme.h"

namespace posenc::page {
namespace {

constexpr std::int64_t kMostNumbers = std::int64_t{1} << 26;  // of a table: 512 MiB of float64
constexpr std::int64_t kMostIds = std::int64_t{1} << 24;

// Positions that outlive the call: consecutive from "first", or the ids of a piece.
struct Where {
  Ids given = {};
  std::int64_t first = 0, count = 0;
  bool is_given = false;
  int axes() const { return is_given ? given.axes : 1; }
  Positions positions() const {
    if (!is_given) return {.first = first};
    return {.ids = given.values, .axes = given.axes};
  }
  std::int64_t least() const {
    return is_given ? *std::min_element(given.values.begin(), given.values.end()) : first;
  }
  std::int64_t most() const {
    return is_given ? *std::max_element(given.values.begin(), given.values.end()) : first + count - 1;
  }
};

Where asked_positions(const Question& question, std::string_view name) {
  Where made;
  made.is_given = has_piece(question, name);
  if (made.is_given) {
    made.given = ids(question, "tabulate", name);
    made.count = made.given.count();
  } else {
    made.first = integer(question.fields, "first", 0);
    made.count = integer(question.fields, "count", 0);
  }
  if (made.count < 1) raise(fmt::format("tabulate: {} are missing: pass a list, or count and first", name));
  if (!made.is_given && made.first > kPositionLimit - made.count) {
    raise(fmt::format("tabulate: positions must be below 2^53 but end at {} + {}", made.first, made.count));
  }
  return made;
}

void check_axes(std::string_view scheme, int axes, const Where& where) {
  if (axes == where.axes()) return;
  raise(fmt::format("{}: needs positions with {} axes, got {}", scheme, axes, where.axes()));
}

// Room for a table of this shape, at the end of the answer's bytes.
TensorView room(Answer& answer, std::string_view name, DataType type, const Extents& shape) {
  const std::int64_t count = count_of(shape);
  const std::size_t from = answer.bytes.size();
  if (count < 1 || count > kMostNumbers) {
    raise(
        fmt::format("tabulate: {} has shape {}; a table has 1 to {} numbers", name, to_string(shape), kMostNumbers));
  }
  answer.bytes.resize(from + static_cast<std::size_t>(count * size_of(type)));
  return {answer.bytes.data() + from, type, shape};
}

Json shape_json(const Extents& shape) {
  Json::Array list;
  for (int axis = 0; axis < shape.rank; ++axis) list.emplace_back(shape[axis]);
  return list;
}

DataType asked_type(const Json& fields) {
  const DataType type = data_type_from(text(fields, "dtype", "f32"));
  if (type == DataType::kI64 || type == DataType::kBool) raise("tabulate: dtype must be f32, f64, f16 or bf16");
  return type;
}

Answer bias_table(const Question& question, const Scheme& scheme, PrepareOptions options) {
  const Where queries = asked_positions(question, "queries");
  const Where keys = has_piece(question, "keys") ? asked_positions(question, "keys") : queries;
  if (has_vectors(trained_table_of(scheme))) {
    raise(fmt::format("{} has no table: its vectors multiply q and k inside attention", name_of(scheme)));
  }
  options.length = length_need_of(scheme) == LengthNeed::kPositions
                       ? std::max(queries.most(), keys.most()) + 1
                       : std::max(keys.most() - queries.least(), queries.most() - keys.least()) + 1;
  const Form form = prepare(scheme, options);
  const Bias& values = std::get<Bias>(form);
  for (const Where* const one : {&queries, &keys}) check_axes(name_of(scheme), position_axes_of(values), *one);
  Answer answer;
  const Extents shape{values.heads, queries.count, keys.count};
  const DataType type = asked_type(question.fields);
  bias(room(answer, name_of(scheme), type, shape), queries.positions(), keys.positions(), values);
  answer.json = Json::Object{{"kind", "bias"}, {"dtype", name_of(type)}, {"shape", shape_json(shape)}};
  return answer;
}

// A list of integers that are not negative.
std::vector<std::int64_t> list_of_counts(const Json& fields, std::string_view name) {
  const Json* const found = fields.find(name);
  const auto* const list = found == nullptr ? nullptr : found->as<Json::Array>();
  if (list == nullptr) raise(fmt::format("positions: {} must be a list of integers", name));
  std::vector<std::int64_t> values;
  for (const Json& one : *list) {
    const auto* const value = one.as<std::int64_t>();
    if (value == nullptr || *value < 0) {
      raise(fmt::format("positions: {} must be integers that are not negative", name));
    }
    values.push_back(*value);
  }
  return values;
}

void check_count(double count, std::string_view name) {
  if (count > static_cast<double>(kMostIds))
    raise(fmt::format("positions: {}: more than {} positions", name, kMostIds));
}

struct Made {
  Extents shape = {};
  std::vector<std::int64_t> values = {};
};

Made of_lengths(const Question& question) {
  const std::vector<std::int64_t> lengths = list_of_counts(question.fields, "lengths");
  double total = 0;
  for (const std::int64_t length : lengths) check_count(total += static_cast<double>(length), "lengths");
  return {{static_cast<std::int64_t>(total)}, packed_positions(lengths)};
}

Made of_grid(const Question& question) {
  const std::vector<std::int64_t> extents = list_of_counts(question.fields, "grid");
  if (extents.empty() || extents.size() > 3) raise("positions: grid needs one to three extents");
  double total = 1;
  for (const std::int64_t extent : extents) check_count(total *= static_cast<double>(extent), "grid");
  return {{std::ssize(extents), static_cast<std::int64_t>(total)},
          flag(question.fields, "centred") ? centred_positions(extents) : grid_positions(extents)};
}

Made of_mask(const Question& question) {
  const Ids mask = ids(question, "positions", "mask");  // [batch, sequence]: a row for each axis
  for (const std::int64_t value : mask.values) {
    if (value != 0 && value != 1)
      raise(fmt::format("positions: a mask must contain only 0 and 1, but contains {}", value));
  }
  const std::string rule = text(question.fields, "rule", "cumulative");
  if (rule != "cumulative" && rule != "roberta") {
    raise(fmt::format("positions: rule must be cumulative or roberta but is {}", rule));
  }
  const MaskOptions options{.batch = mask.axes,
                            .rule = rule == "roberta" ? MaskRule::kRoberta : MaskRule::kCumulative,
                            .padding = integer(question.fields, "padding", MaskOptions{}.padding)};
  const bool is_batch = flag(question.fields, "batched");
  return {is_batch ? Extents{mask.axes, mask.count()} : Extents{mask.count()},
          positions_from_mask(mask.values, options)};
}

Made of_random(const Question& question) {
  const std::int64_t count = integer(question.fields, "random", 0);
  check_count(static_cast<double>(count), "random");
  const std::int64_t seed = integer(question.fields, "seed", 1);
  if (seed < 0) raise(fmt::format("positions: seed must not be negative but is {}", seed));
  return {{count},
          randomised_positions(count, integer(question.fields, "below", 0), static_cast<std::uint64_t>(seed))};
}

Made of_spec(const Question& question) {
  const Json& fields = question.fields;
  MropeFamily family = mrope_family(text(fields, "family", "qwen2-vl"));
  const std::int64_t rate = integer(fields, "rate", 0);
  if (rate < 0 || rate > 1 << 20) raise(fmt::format("positions: rate must be 1 to 2^20 but is {}", rate));
  if (rate > 0 && family.rate == 0) raise(fmt::format("positions: rate: {} counts frames, not seconds", family.name));
  if (rate > 0) family.rate = rate;
  MropeOptions options{.merge = integer(fields, "merge", MropeOptions{}.merge), .advance = family.advance};
  if (options.merge < 1 || options.merge > 64) {
    raise(fmt::format("positions: merge must be 1 to 64 but is {}", options.merge));
  }
  if (family.rate > 0) options.rate = family.rate;
  options.chunk = 2 * options.rate;
  const std::vector<MropePiece> pieces = mrope_pieces(text(fields, "spec"), family);
  double tokens = 0;
  for (const MropePiece& one : pieces) {
    tokens += static_cast<double>(one.text) + static_cast<double>(one.sound) +
              static_cast<double>(one.frames) * static_cast<double>(one.rows) * static_cast<double>(one.columns) /
                  static_cast<double>(options.merge * options.merge);
    check_count(3 * tokens, "spec");
  }
  MropePositions made = mrope_positions(pieces, options);
  return {{3, made.tokens}, std::move(made.ids)};
}

}  // namespace

/// Of an addition its vectors, of a rotation the cosines, then the sines, of a bias what it adds to scores.
Answer tabulate_scheme(const Question& question) {
  const Json& fields = question.fields;
  const Json* const found = fields.find("scheme");
  if (found == nullptr) raise("tabulate: scheme is missing");
  const Scheme scheme = scheme_from(*found);
  NpyArray kept;
  PrepareOptions options{.length = integer(fields, "length", 0),
                         .numerics = numerics_from(text(fields, "numerics", "exact"))};
  if (options.length < 0) raise(fmt::format("tabulate: length must not be negative but is {}", options.length));
  if (has_piece(question, "weights")) options.weights = tensor(question, "tabulate", "weights", kept);
  if (is_bias(scheme)) return bias_table(question, scheme, options);
  if (has_piece(question, "queries") || has_piece(question, "keys")) {
    raise(fmt::format("{}: takes positions; only biases take queries and keys", name_of(scheme)));
  }
  if (options.length == 0 && length_need_of(scheme) == LengthNeed::kSequence) {
    raise(fmt::format("{}: depends on the length of the sequence; pass length", name_of(scheme)));
  }
  const Where where = asked_positions(question, "positions");
  const DataType type = asked_type(fields);
  const Form form = prepare(scheme, options);
  Answer answer;
  if (const auto* const addition = std::get_if<Addition>(&form)) {
    check_axes(name_of(scheme), position_axes_of(*addition), where);
    const Extents shape{where.count, addition->width};
    tabulate(room(answer, name_of(scheme), type, shape), where.positions(), *addition);
    answer.json = Json::Object{{"kind", "addition"}, {"dtype", name_of(type)}, {"shape", shape_json(shape)}};
  } else if (const auto* const whole = std::get_if<Rotation>(&form)) {
    const std::int64_t head = integer(fields, "head", 0);
    if (head < 0 || head >= heads_of(*whole)) {
      raise(fmt::format("{}: head must be 0 to {} but is {}", name_of(scheme), heads_of(*whole) - 1, head));
    }
    const Rotation rotation = head_of(*whole, head);
    check_axes(name_of(scheme), position_axes_of(rotation), where);
    const Extents shape{where.count, pairs_of(rotation)};
    const TensorView both = room(answer, name_of(scheme), type, {2, shape[0], shape[1]});
    auto* const sines = static_cast<std::byte*>(both.data) + answer.bytes.size() / 2;
    tabulate({both.data, type, shape}, {sines, type, shape}, where.positions(), rotation);
    answer.json = Json::Object{{"kind", "rotation"}, {"dtype", name_of(type)}, {"shape", shape_json(shape)}};
  } else {
    raise(fmt::format("{} has no table, because it adds nothing", name_of(scheme)));
  }
  return answer;
}

Answer make_positions(const Question& question) {
  const Json& fields = question.fields;
  const std::string kind = text(fields, "kind");
  Made made;
  if (kind == "lengths") {
    made = of_lengths(question);
  } else if (kind == "grid") {
    made = of_grid(question);
  } else if (kind == "mask") {
    made = of_mask(question);
  } else if (kind == "random") {
    made = of_random(question);
  } else if (kind == "spec") {
    made = of_spec(question);
  } else {
    raise("positions: needs exactly one of lengths, grid, mask, random and spec");
  }
  const std::int64_t first = integer(fields, "first", 0);
  Answer answer;
  answer.bytes.resize(made.values.size() * sizeof(double));
  for (std::size_t i = 0; i < made.values.size(); ++i) {
    const std::int64_t sum = made.values[i] + first;  // both are below 2^54
    if (sum >= kPositionLimit || sum <= -kPositionLimit) {
      raise(fmt::format("positions: first: {} + {} is not below 2^53", made.values[i], first));
    }
    const auto value = static_cast<double>(sum);
    std::memcpy(answer.bytes.data() + i * sizeof value, &value, sizeof value);
  }
  answer.json = Json::Object{{"shape", shape_json(made.shape)}};
  return answer;
}

}  // namespace posenc::page
