#include "diagnosis/rivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "diagnosis/angles.h"
#include "diagnosis/element.h"
#include "diagnosis/structure.h"
#include "posenc/apply.h"
#include "posenc/schemes/choice.h"

namespace posenc::diagnosis {
namespace {

using Rivals = std::vector<Rival>;

// A port that has another value in one field.
template <class S, class T> void other_field(Rivals& list, std::string_view name, const S& scheme, T S::*member,
                                             const T& value, const auto& shown) {
  if (scheme.*member == value) return;
  S port = scheme;
  port.*member = value;
  const auto expected = fmt::format("{}", shown(scheme.*member)), got = fmt::format("{}", shown(value));
  list.push_back({.name = fmt::format("{} {}", name, got),
                  .from = fmt::format("{} {}", name, expected),
                  .to = got,
                  .change = fmt::format("{}: expected {}, got {}", name, expected, got),
                  .scheme = port});
}
constexpr auto kAsIs = [](const auto& value) { return value; };
constexpr auto kAsName = [](const auto& value) { return choice_name(value); };
constexpr auto kAsWord = [](bool value) { return value ? "true" : "false"; };

void add_wave_rivals(const Sinusoidal& waves, Rivals& list) {
  for (const WaveLayout layout : {WaveLayout::kInterleaved, WaveLayout::kSinCos, WaveLayout::kCosSin}) {
    other_field(list, "columns", waves, &Sinusoidal::layout, layout, kAsName);
  }
  for (const Spacing spacing : {Spacing::kPaper, Spacing::kInclusive}) {
    // a single pair has no spacing
    if (waves.width / waves.axes >= 4) other_field(list, "spacing", waves, &Sinusoidal::spacing, spacing, kAsName);
  }
  for (const double base : {10000.0, waves.base / 10, waves.base * 10, std::sqrt(waves.base)}) {
    if (base > 1 && waves.width / waves.axes >= 4) other_field(list, "base", waves, &Sinusoidal::base, base, kAsIs);
  }
  other_field(list, "scale", waves, &Sinusoidal::scale, 2 * waves.scale, kAsIs);
}

// Slopes that ports compute in other ways.
void add_slope_rivals(const Alibi& alibi, Rivals& list) {
  const Form form = prepare(Scheme(alibi), {});
  const std::vector<double> right = std::get<Slopes>(std::get<Bias>(form).source).slopes;
  const auto add = [&](std::string name, std::string change, std::vector<double> slopes) {
    if (slopes == right) return;
    list.push_back({.name = name,
                    .from = "the slopes",
                    .to = std::move(name),
                    .change = std::move(change),
                    .scheme = alibi,
                    .slopes = std::move(slopes)});
  };
  std::vector<double> naive;
  const auto heads = static_cast<double>(alibi.heads);
  for (double head = 1; head <= heads; ++head) {
    naive.push_back(alibi.scale * std::exp2(-alibi.max_bias * head / heads));
  }
  const bool is_power = (alibi.heads & (alibi.heads - 1)) == 0;
  if (!is_power) {
    add("slopes as for a power of two",
        fmt::format(
            "Slopes are 2^(-{}(h+1)/{}), which is for powers of two. Take those of the next lower power, then "
            "every other of twice that many",
            alibi.max_bias, alibi.heads),
        naive);
  }
  if (!is_power) {
    std::vector<double> early;
    Alibi lower = alibi;
    lower.scale = 1;
    for (lower.heads = 1; 2 * lower.heads < alibi.heads;) lower.heads *= 2;
    const double first = std::exp2(alibi.max_bias / static_cast<double>(lower.heads));
    for (std::size_t head = 0; head < right.size(); ++head) {
      early.push_back(right[head] * (static_cast<std::int64_t>(head) < lower.heads ? first : std::sqrt(first)));
    }
    add("slopes that start at 1", "The exponents of slopes start at 0: they have h where h + 1 belongs", early);
    for (const std::int64_t count : {lower.heads * 2, alibi.heads * 2}) {
      Alibi other = alibi;
      other.heads = count;
      const Form of_other = prepare(Scheme(other), {});
      const std::vector<double>& list_of = std::get<Slopes>(std::get<Bias>(of_other).source).slopes;
      add(fmt::format("slopes of {} heads", count),
          fmt::format("The slopes are the first of those of {} heads. Take those of {}", count, alibi.heads),
          {list_of.begin(), list_of.begin() + static_cast<std::ptrdiff_t>(alibi.heads)});
    }
  }
  add("slopes in reverse", "Slopes are in the reverse order: the first head has the steepest",
      {right.rbegin(), right.rend()});
  for (const std::int64_t shards : {2, 4, 8}) {
    if (alibi.heads % shards != 0 || alibi.heads == shards) continue;
    Alibi part = alibi;
    part.heads = alibi.heads / shards;
    const Form of_part = prepare(Scheme(part), {});
    const std::vector<double> one = std::get<Slopes>(std::get<Bias>(of_part).source).slopes;
    std::vector<double> repeated;
    for (std::int64_t shard = 0; shard < shards; ++shard) repeated.insert(repeated.end(), one.begin(), one.end());
    add(fmt::format("slopes that start again in each of {} parts", shards),
        fmt::format("Slopes start again every {} heads, as in shards of their own. Take those of all {} heads",
                    part.heads, alibi.heads),
        repeated);
  }
}

void add_alibi_rivals(const Alibi& alibi, Rivals& list) {
  other_field(list, "max_bias", alibi, &Alibi::max_bias, alibi.max_bias / 2, kAsIs);
  if (alibi.max_bias <= 500) other_field(list, "max_bias", alibi, &Alibi::max_bias, alibi.max_bias * 2, kAsIs);
  if (alibi.heads > 1 && !alibi.round_bf16) add_slope_rivals(alibi, list);
}

void add_t5_rivals(const T5& t5, Rivals& list) {
  const std::int64_t exact = t5.buckets / (t5.bidirectional ? 4 : 2);
  if (t5.max_distance / 2 > exact) {
    other_field(list, "max_distance", t5, &T5::max_distance, t5.max_distance / 2, kAsIs);
  }
  other_field(list, "max_distance", t5, &T5::max_distance, t5.max_distance * 2, kAsIs);
  for (const std::int64_t step : {1, -1}) {  // the nearest that differs at all: any other differs there as well
    T5 port = t5;
    do {
      port.max_distance += step;
    } while (port.max_distance > exact && port.max_distance <= 2 * t5.max_distance &&
             buckets_of(port) == buckets_of(t5));
    if (port.max_distance <= exact || port.max_distance > 2 * t5.max_distance) continue;
    other_field(list, "max_distance", t5, &T5::max_distance, port.max_distance, kAsIs);
  }
  for (const std::int64_t buckets : {t5.buckets / 2, t5.buckets * 2}) {
    const std::int64_t parts = t5.bidirectional ? 4 : 2;
    if (buckets < parts || buckets % (parts / 2) != 0 || buckets > 8192 || t5.max_distance <= buckets / parts)
      continue;
    other_field(list, "buckets", t5, &T5::buckets, buckets, kAsIs);
  }
  const bool can_be_two = t5.buckets >= 4 && t5.buckets % 2 == 0 && t5.max_distance > t5.buckets / 4;
  const bool can_be_one = t5.max_distance > t5.buckets / 2;
  if (t5.bidirectional ? can_be_one : can_be_two) {
    other_field(list, "bidirectional", t5, &T5::bidirectional, !t5.bidirectional, kAsWord);
  }
  list.push_back({.name = "queries and keys swapped",
                  .from = "key minus query",
                  .to = "query minus key",
                  .change = "Distances are query minus key: queries and keys are swapped. Use key minus query",
                  .scheme = t5,
                  .placing = Placing::kTransposed});
}

// Cosines and sines of a rotation with a known mistake.
struct Turns {
  std::vector<double> cosines, sines;
};

// What such a rotation makes of vectors; in place of the fast kernels, which make no mistakes.
void turn(const Rival& rival, const Rotation& form, const Turns& turns, const Extents& shape,
          std::vector<double>& values) {
  const std::int64_t pairs = pairs_of(form), features = shape.back(0), tokens = shape.back(1);
  const std::int64_t first = form.first_dim < 0 ? features + form.first_dim : form.first_dim;
  const std::int64_t in_block = pairs / form.blocks;
  const std::vector<double> before = values;
  for (std::int64_t row = 0; row < std::ssize(values) / features; ++row) {
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const std::int64_t start = first + pair / in_block * 2 * in_block;
      const Place place = place_of(form.layout, 2 * in_block, start, pair % in_block);
      const auto at = [&](std::int64_t feature) { return static_cast<std::size_t>(row * features + feature); };
      // the pair whose angle the feature gets
      const auto angle_at = [&](std::int64_t feature) {
        std::int64_t which = pair;
        if (rival.turning == Turning::kOtherCosines) {
          const std::int64_t j = feature - start;
          const bool is_halves = placement_of(form.layout, in_block).write.step == 1;
          which = pair / in_block * in_block + (is_halves ? j / 2 : j % in_block);
        }
        return static_cast<std::size_t>(row % tokens * pairs + which);
      };
      const double a = before[at(place.read_a)], b = before[at(place.read_b)];
      const std::size_t for_a = angle_at(place.write_a), for_b = angle_at(place.write_b);
      double c = turns.cosines[for_a], s = turns.sines[for_a], c2 = turns.cosines[for_b], s2 = turns.sines[for_b];
      if (rival.turning == Turning::kSwapped) {
        std::swap(c, s);
        std::swap(c2, s2);
      }
      values[at(place.write_a)] = rival.turning == Turning::kNoMinus ? a * c + b * s : a * c - b * s;
      values[at(place.write_b)] = b * c2 + a * s2;
    }
  }
}

// Of an image, which begins where the axes part, all axes but the first lose the position at which it starts.
void remove_offsets(std::vector<std::int64_t>& ids, std::size_t count) {
  const std::size_t axes = ids.size() / count;
  const std::vector<std::int64_t> given = ids;
  const auto is_apart = [&](std::size_t token) {
    for (std::size_t axis = 1; axis < axes; ++axis) {
      if (given[axis * count + token] != given[token]) return true;
    }
    return false;
  };
  std::int64_t start = 0;
  for (std::size_t token = 0; token < count; ++token) {
    // the corner of an image has the same position on every axis
    const bool is_corner =
        token + 1 < count && !is_apart(token) && is_apart(token + 1) && given[token] == given[token + 1];
    if (!is_apart(token) && !is_corner) continue;
    if (is_corner || token == 0 || (!is_apart(token - 1) && given[token - 1] != given[token])) start = given[token];
    for (std::size_t axis = 1; axis < axes; ++axis) ids[axis * count + token] -= start;
  }
}

// The positions that such a port uses, for a form of this many axes.
std::vector<std::int64_t> moved(const Rival& rival, const std::vector<std::int64_t>& ids, int axes, int form_axes) {
  const std::size_t count = ids.size() / axes;
  std::vector<std::int64_t> result;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(form_axes); ++axis) {
    const std::size_t source = std::min(rival.axes.empty() ? axis : rival.axes[axis], ids.size() / count - 1) * count;
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t id = ids[source + i];
      if (rival.placing == Placing::kReversed) id = ids[source + count - 1 - i];
      if (rival.placing == Placing::kConstant) id = ids[source];
      if (rival.placing == Placing::kCounted) id = ids.front() + static_cast<std::int64_t>(i);
      result.push_back(rounded_position(rival.angles, id + rival.shift));
    }
  }
  if (rival.placing == Placing::kNoOffset) remove_offsets(result, count);
  return result;
}

// Queries and keys exchanged: distances change their sign.
void mirror(CheckPositions& positions) {
  std::int64_t most = 0;
  for (const auto* const ids : {&positions.tokens, &positions.keys}) {
    most = std::max(most, *std::max_element(ids->begin(), ids->end()));
  }
  for (auto* const ids : {&positions.tokens, &positions.keys}) {
    for (std::int64_t& id : *ids) id = most - id;
  }
}

// A table of as many rows as such a port asks for: what is missing is the last row.
std::vector<double> with_rows(const ConstTensorView& table, std::int64_t rows) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t head = 0; head < table.shape[1]; ++head) {
      values.push_back(element(table, offset_of({std::min(row, table.shape[0] - 1), head}, table.strides)));
    }
  }
  return values;
}

// A bias of distances does not see where both begin, only queries that are moved against the keys; and a bias that is linear
// gains a constant for each query if they are moved away from all keys.
void add_query_rivals(const Scheme& scheme, const RivalInputs& inputs, Rivals& list) {
  const auto add = [&](std::string name, std::string change, std::int64_t shift) {
    list.push_back({.name = name,
                    .from = "positions of queries",
                    .to = std::move(name),
                    .change = std::move(change),
                    .scheme = scheme,
                    .shift = shift,
                    .is_equivalent = std::holds_alternative<Alibi>(scheme) && shift > 0 && !inputs.has_later_keys});
  };
  for (const std::int64_t shift : {1, -1}) {
    add(fmt::format("queries off by {}", shift),
        fmt::format("Queries are off by {} against their keys. Count both from the same token", shift), shift);
  }
  const std::int64_t cached = inputs.least_position - inputs.least_key;
  if (cached > 1) {
    add("queries counted from 0",
        fmt::format(
            "Queries are counted from 0, although {} keys come before them. Add that number to their positions",
            cached),
        -cached);
  }
}

void add_position_rivals(const Scheme& scheme, const RivalInputs& inputs, Rivals& list) {
  const bool has_rows = inputs.rows > 0;
  for (const std::int64_t shift : {1, -1}) {
    if (has_rows && (inputs.least_position + shift < 0 || inputs.last_position + shift >= inputs.rows)) continue;
    list.push_back({.name = fmt::format("positions off by {}", shift),
                    .from = "positions",
                    .to = fmt::format("positions off by {}", shift),
                    .change = fmt::format("Positions are off by {}. Count from 0", shift),
                    .scheme = scheme,
                    .shift = shift});
  }
  if (is_rotation(scheme)) {
    list.push_back({.name = "applied twice",
                    .from = "one rotation",
                    .to = "two",
                    .change = "The rotation was applied twice. Apply it once",
                    .scheme = scheme,
                    .times = 2});
  }
  if (inputs.least_position < inputs.last_position) {
    list.push_back({.name = "positions in reverse",
                    .from = "positions",
                    .to = "positions in reverse",
                    .change = "Positions are reversed. Count from the first token to the last",
                    .scheme = scheme,
                    .placing = Placing::kReversed});
    // position 0 for all is no rotation, if features stay where they are and as large as they are
    const auto* const rope = std::get_if<Rope>(&scheme);
    const PairPlacement places = placement_of(rope == nullptr ? PairLayout::kHalves : rope->layout, 4);
    const bool is_still =
        places.read == places.write && (rope == nullptr || prepare(*rope, {.length = 1}).magnitude == 1);
    if (inputs.least_position == 0 && is_rotation(scheme) && is_still) return;
    list.push_back({.name = "one position for all tokens",
                    .from = "positions",
                    .to = "one position for all tokens",
                    .change = "Every token has the position of the first. Count them",
                    .scheme = scheme,
                    .placing = Placing::kConstant});
  }
}

}  // namespace

std::vector<Rival> rivals_of(const Scheme& scheme, const RivalInputs& inputs) {
  Rivals list;
  const std::string name(name_of(scheme));
  if (std::holds_alternative<None>(scheme)) {
    if (inputs.features >= 2) {
      list.push_back({.name = "rope",
                      .from = "no position",
                      .to = "rope",
                      .change = "scheme: expected none, got rope",
                      .scheme = Rope{.dims = inputs.features / 2 * 2}});
    }
    return list;
  }
  list.push_back({.name = fmt::format("no {}", name),
                  .from = name,
                  .to = "none",
                  .change = "Nothing was applied: before and after are the same",
                  .scheme = None{}});
  if (const auto* const rope = std::get_if<Rope>(&scheme)) add_rope_rivals(*rope, inputs, list);
  if (const auto* const waves = std::get_if<Sinusoidal>(&scheme)) add_wave_rivals(*waves, list);
  if (const auto* const alibi = std::get_if<Alibi>(&scheme)) add_alibi_rivals(*alibi, list);
  if (const auto* const t5 = std::get_if<T5>(&scheme)) add_t5_rivals(*t5, list);
  if (std::holds_alternative<Alibi>(scheme) || std::holds_alternative<T5>(scheme)) {
    add_query_rivals(scheme, inputs, list);
  }
  if (is_bias(scheme)) return list;  // depends on distances alone
  add_position_rivals(scheme, inputs, list);
  return list;
}

Expected expected_of(const Rival& rival, const std::vector<double>& before, const Extents& shape,
                     const Surroundings& where) {
  PrepareOptions options{.length = where.length, .numerics = numerics_of(rival.angles), .weights = where.weights};
  const auto* const t5 = std::get_if<T5>(&rival.scheme);
  std::vector<double> rows;
  if (t5 != nullptr && where.weights.data != nullptr && where.weights.shape[0] != t5->buckets) {
    rows = with_rows(where.weights, t5->buckets);
    options.weights = view(std::as_const(rows).data(), {t5->buckets, t5->heads});
  }
  Form form = prepare(rival.scheme, options);
  if (std::holds_alternative<Nothing>(form)) {  // for scores as well, of which some are masked
    Expected same{before, before, before, {}};
    for (double& size : same.scale) size = std::fabs(size);
    return same;
  }
  const auto* const rotation = std::get_if<Rotation>(&form);
  const auto* const addition = std::get_if<Addition>(&form);
  const int axes = rotation != nullptr   ? position_axes_of(*rotation)
                   : addition != nullptr ? position_axes_of(*addition)
                                         : where.axes;
  CheckPositions positions{moved(rival, where.positions.tokens, where.axes, axes), where.positions.keys};
  if (rival.placing == Placing::kTransposed) mirror(positions);
  if (is_bias(rival.scheme) && rival.shift < 0) {  // positions are not negative
    for (auto* const ids : {&positions.tokens, &positions.keys}) {
      for (std::int64_t& id : *ids) id -= rival.shift;
    }
  }
  if (auto* const bias = std::get_if<Bias>(&form); bias != nullptr && !rival.slopes.empty()) {
    std::get<Slopes>(bias->source).slopes = rival.slopes;
  }
  Expected expected = expected_of(form, view(before.data(), shape), positions, axes);
  for (int time = 1; time < rival.times; ++time) {
    expected = expected_of(form, view(std::as_const(expected.values).data(), shape), positions, axes);
    expected.before = before;
  }
  if (rotation == nullptr || !is_plain(*rotation)) return expected;
  allow_float32_angles(*rotation, shape, positions, expected);
  if (rival.turning == Turning::kRight && rival.angles == AngleKind::kExact) return expected;
  Rotation rounded = *rotation;
  round_frequencies(rival.angles, rounded);
  Turns turns;
  turns.cosines.resize(shape.back(1) * pairs_of(rounded));
  turns.sines.resize(turns.cosines.size());
  tabulate_as(rival.angles, rounded, positions.tokens, turns.cosines, turns.sines);
  expected.values = before;
  turn(rival, rounded, turns, shape, expected.values);
  return expected;
}

}  // namespace posenc::diagnosis
