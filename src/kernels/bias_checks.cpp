#include "kernels/bias_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "posenc/error.h"

namespace posenc::kernels {
namespace {

struct Range {
  std::int64_t least, most;
};

void check_map(std::string_view verb, const DistanceMap& map) {
  if (map.entries.empty()) raise(fmt::format("{}: the form has an empty map of distances", verb));
  if (map.first < -kPositionLimit || map.first > kPositionLimit) {
    raise(fmt::format("{}: the form's first distance must be within 2^53 but is {}", verb, map.first));
  }
}

Range entries_of(const DistanceMap& map) {
  const auto [least, most] = std::minmax_element(map.entries.begin(), map.entries.end());
  return {*least, *most};
}

/// Checks that the rows a form may refer to are in its table.
void check_rows(std::string_view verb, const Range& named, std::int64_t rows) {
  if (named.least >= 0 && named.most < rows) return;
  raise(fmt::format("{}: the form names rows {} to {} of a table with {}", verb, named.least, named.most, rows));
}

void check_size(std::string_view verb, std::string_view what, std::size_t size, std::size_t wanted) {
  if (size != wanted) raise(fmt::format("{}: the form must have {} {} but has {}", verb, wanted, what, size));
}

struct CheckSource {
  std::string_view verb;
  std::int64_t heads;  // of the form

  void operator()(const Slopes& source) const {
    check_size(verb, "slopes", source.slopes.size(), static_cast<std::size_t>(heads));
  }
  void operator()(const DistanceTable& source) const {
    if (source.axes.empty() || source.axes.size() > 255) {
      raise(fmt::format("{}: the form must have 1 to 255 axes but has {}", verb, source.axes.size()));
    }
    const ConstTensorView table = table_of(source, heads);
    check_tensor(verb, "the form's table", table, 2, 2, "2 axes, rows and heads");
    if (table.shape[1] != heads) {
      raise(fmt::format("{}: the form has {} heads but its table has {}", verb, heads, table.shape[1]));
    }
    Range named{0, 0};
    for (const DistanceMap& map : source.axes) {
      check_map(verb, map);
      const Range entries = entries_of(map);
      if (entries.least < -kPositionLimit || entries.most > kPositionLimit) {
        raise(fmt::format("{}: the form names row {}", verb, entries.least < 0 ? entries.least : entries.most));
      }
      named.least += entries.least;
      named.most += entries.most;
    }
    check_rows(verb, named, table.shape[0]);
  }
  void operator()(const DistanceVectors& source) const {
    std::size_t axes = 0;
    for (const VectorsByDistance* vectors : {&source.for_queries, &source.for_keys, &source.for_values}) {
      const ConstTensorView table = table_of(*vectors);
      if (table.data == nullptr) continue;
      check_tensor(verb, "the form's table", table, 2, 3, "2 or 3 axes, heads, rows and features");
      if (vectors->axes.empty() || vectors->axes.size() > 255 || (axes != 0 && vectors->axes.size() != axes)) {
        raise(fmt::format("{}: the form's vectors must have 1 to 255 axes, as many each, but have {}", verb,
                          vectors->axes.size()));
      }
      axes = vectors->axes.size();
      for (const DistanceMap& map : vectors->axes) {
        check_map(verb, map);
        const Range entries = entries_of(map);
        check_rows(verb, {entries.least == kNoRow ? 0 : entries.least, entries.most}, table.shape.back(1));
      }
      if (table.shape.rank == 3 && table.shape[0] != heads) {
        raise(fmt::format("{}: the form has {} heads but its table has {}", verb, heads, table.shape[0]));
      }
    }
    if (source.query_offsets.empty()) return;
    check_size(verb, "offsets of queries", source.query_offsets.size(),
               static_cast<std::size_t>(heads * query_features_of(source)));
  }
  void operator()(const GateSums&) const {}
  void operator()(const CountedGates& source) const {
    check_tensor(verb, "the form's table", source.table, 2, 3, "2 or 3 axes, heads, rows and features");
    if (source.table.data == nullptr || source.table.shape.back(1) < 1) {
      raise(fmt::format("{}: the form's table has no rows", verb));
    }
    if (source.table.shape.rank == 3 && source.table.shape[0] != heads) {
      raise(fmt::format("{}: the form has {} heads but its table has {}", verb, heads, source.table.shape[0]));
    }
  }
  void operator()(const DistanceRatios& source) const {
    const std::size_t width = source.hidden_weights.size(), count = static_cast<std::size_t>(heads);
    check_size(verb, "hidden biases", source.hidden_biases.size(), width);
    check_size(verb, "output weights", source.output_weights.size(), count * width);
    check_size(verb, "output biases", source.output_biases.size(), count);
  }
};

Range positions_in(const TokenPositions& positions, std::int64_t b, std::int64_t count, int axis) {
  if (!positions.has_ids()) return {positions.first, positions.first + count - 1};
  Range range{positions.at(b, 0, axis), positions.at(b, 0, axis)};
  for (std::int64_t t = 1; t < count; ++t) {
    range.least = std::min(range.least, positions.at(b, t, axis));
    range.most = std::max(range.most, positions.at(b, t, axis));
  }
  return range;
}

// The distance maps of a form, each covering all its axes; null: no more.
using Maps = std::array<const std::vector<DistanceMap>*, 3>;
Maps maps_of(const Bias& form) {
  if (const auto* const table = std::get_if<DistanceTable>(&form.source)) return {&table->axes};
  Maps maps{};
  if (const auto* const vectors = std::get_if<DistanceVectors>(&form.source)) {
    std::size_t next = 0;
    for (const VectorsByDistance* const part : {&vectors->for_queries, &vectors->for_keys, &vectors->for_values}) {
      if (table_of(*part).data != nullptr) maps[next++] = &part->axes;
    }
  }
  return maps;
}

}  // namespace

void check_bias(std::string_view verb, const Bias& form, std::int64_t heads) {
  const bool shared = form.heads == 0 && needs_content(form);
  if (!shared && form.heads != heads) {
    raise(fmt::format("{}: the form has {} heads but the tensor has {}", verb, form.heads, heads));
  }
  std::visit(CheckSource{verb, form.heads}, form.source);
}

void check_distances(std::string_view verb, const Bias& form, const QueryKey<TokenPositions>& positions,
                     const BiasTokens& tokens) {
  if (tokens.queries == 0 || tokens.keys == 0) return;
  const bool shared = positions.q.batch_stride == 0 && positions.k.batch_stride == 0;
  const std::int64_t sequences = shared ? std::min<std::int64_t>(tokens.batch, 1) : tokens.batch;
  const auto* const ratios = std::get_if<DistanceRatios>(&form.source);
  const Maps maps = maps_of(form);
  for (std::int64_t b = 0; b < sequences; ++b) {
    for (int axis = 0; axis < position_axes_of(form); ++axis) {
      const Range queries = positions_in(positions.q, b, tokens.queries, axis);
      const Range keys = positions_in(positions.k, b, tokens.keys, axis);
      if (ratios != nullptr) {
        const std::int64_t most = std::max(queries.most, keys.most),
                           size = static_cast<std::int64_t>(ratios->logs.size());
        if (most >= size) {
          raise(
              fmt::format("{}: position {} is past the length that the form was prepared for, {}", verb, most, size));
        }
      }
      for (const std::vector<DistanceMap>* const axes : maps) {
        if (axes == nullptr) break;
        const DistanceMap& map = (*axes)[static_cast<std::size_t>(axis)];
        const Range apart{keys.least - queries.most, keys.most - queries.least};
        const std::int64_t last = map.first + static_cast<std::int64_t>(map.entries.size()) - 1;
        if (map.open || (apart.least >= map.first && apart.most <= last)) continue;
        raise(fmt::format("{}: a key lies {} from a query, but the form was prepared for {} to {}", verb,
                          apart.least < map.first ? apart.least : apart.most, map.first, last));
      }
    }
  }
}

}  // namespace posenc::kernels
