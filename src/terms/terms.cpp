// From a bias to the module of its kind, and the functions of forms.h that are about biases.

#include "terms/terms.h"

#include <fmt/format.h>

#include <algorithm>

#include "forms/checks.h"
#include "posenc/error.h"
#include "terms/all.h"
#include "terms/tables.h"

namespace posenc {

using terms::with_term;

bool needs_content(const Bias& bias) noexcept {
  return with_term(bias, [](const auto&, auto term) { return !term.only_attention.empty(); });
}

BiasInputs inputs_of(const Bias& bias) noexcept {
  return with_term(bias, [](const auto& source, auto term) { return term.inputs(source); });
}

double softmax_factor_of(const Bias& bias) noexcept {
  return with_term(bias, [](const auto& source, auto term) { return term.softmax_factor(source); });
}

Bias head_of(const Bias& bias, std::int64_t head) {
  if (head < 0 || (bias.heads > 0 && head >= bias.heads)) {
    raise(fmt::format("head_of: head {} of a bias with {} heads", head, bias.heads));
  }
  return with_term(bias, [&](const auto& source, auto term) {
    return Bias{1, term.some_heads(source, bias.heads, {head, 1})};
  });
}

Bias slice_heads(const Bias& bias, std::int64_t first, std::int64_t count) {
  check_head_slice(first, count, bias.heads);
  if (bias.heads == 0) return bias;
  return with_term(bias, [&](const auto& source, auto term) {
    return Bias{count, term.some_heads(source, bias.heads, {first, count})};
  });
}

int position_axes_of(const Bias& bias) noexcept {
  std::size_t axes = 0;
  with_term(bias, [&](const auto& source, auto term) {
    term.each_map(source, [&](const std::vector<DistanceMap>& maps) { axes = axes == 0 ? maps.size() : axes; });
  });
  return std::max(static_cast<int>(axes), 1);
}

void bind(Bias& form, ConstTensorView weights, ConstTensorView key_weights, ConstTensorView value_weights) {
  std::visit(
      [&]<class Kind>(Kind& source) {
        terms::Term<Kind>::bind(source, {weights, key_weights, value_weights});
      },
      form.source);
}

namespace terms {
namespace {

Range positions_in(const TokenPositions& positions, std::int64_t b, std::int64_t count, int axis) {
  if (!positions.has_ids()) return {positions.first, positions.first + count - 1};
  Range range{positions.at(b, 0, axis), positions.at(b, 0, axis)};
  for (std::int64_t t = 1; t < count; ++t) {
    range.least = std::min(range.least, positions.at(b, t, axis));
    range.most = std::max(range.most, positions.at(b, t, axis));
  }
  return range;
}

void check_distances(std::string_view verb, const DistanceMap& map, const Range& queries, const Range& keys) {
  const Range apart{keys.least - queries.most, keys.most - queries.least};
  if (map.open || (apart.least >= map.first && apart.most <= last_of(map))) return;
  raise(fmt::format("{}: key offset {} is outside {} to {}, which the form was prepared for", verb,
                    apart.least < map.first ? apart.least : apart.most, map.first, last_of(map)));
}

std::int64_t length(const Bias& bias) noexcept {
  return with_term(bias, [](const auto& source, auto term) { return term.length(source); });
}

}  // namespace

std::string_view name_of(const Bias& bias) noexcept {
  return with_term(bias, [](const auto&, auto term) { return term.name; });
}

void check(std::string_view verb, const Bias& bias, std::int64_t heads) {
  const bool shared = bias.heads == 0 && needs_content(bias);
  if (!shared && bias.heads != heads) {
    raise(fmt::format("{}: the form has {} heads but the tensor has {}", verb, bias.heads, heads));
  }
  with_term(bias, [&](const auto& source, auto term) { term.check(verb, source, bias.heads); });
}

void check_positions(std::string_view verb, const Bias& bias, const TokenPositions& queries,
                     const TokenPositions& keys, const TokenCounts& counts) {
  if (counts.queries == 0 || counts.keys == 0) return;
  const bool shared = queries.batch_stride == 0 && keys.batch_stride == 0;
  const std::int64_t sequences = shared ? std::min<std::int64_t>(counts.batch, 1) : counts.batch;
  const std::int64_t size = length(bias);
  for (std::int64_t b = 0; b < sequences; ++b) {
    for (int axis = 0; axis < position_axes_of(bias); ++axis) {
      const Range of_queries = positions_in(queries, b, counts.queries, axis);
      const Range of_keys = positions_in(keys, b, counts.keys, axis);
      if (const std::int64_t most = std::max(of_queries.most, of_keys.most); most >= size) {
        raise(fmt::format("{}: position {} is past the length that the form was prepared for, {}", verb, most, size));
      }
      with_term(bias, [&](const auto& source, auto term) {
        term.each_map(source, [&](const std::vector<DistanceMap>& maps) {
          check_distances(verb, maps[axis], of_queries, of_keys);
        });
      });
    }
  }
}

void check_features(std::string_view verb, const Bias& bias, std::int64_t q, std::int64_t v) {
  with_term(bias, [&](const auto& source, auto term) { term.check_features(verb, source, q, v); });
}

void refuse_content(std::string_view verb, const Bias& bias) {
  const std::string_view why = with_term(bias, [](const auto&, auto term) { return term.only_attention; });
  if (!why.empty()) raise(fmt::format("{}: {}", verb, why));
}

bool has_signed_positions(const Bias& bias) noexcept { return length(bias) == kPositionLimit; }

std::int64_t reach(const Bias& bias) noexcept {
  std::int64_t reach = length(bias);
  with_term(bias, [&](const auto& source, auto term) {
    term.each_map(source, [&](const std::vector<DistanceMap>& maps) {
      for (const DistanceMap& map : maps) {
        if (!map.open) reach = std::min(reach, std::max<std::int64_t>(0, std::min(-map.first, last_of(map)) + 1));
      }
    });
  });
  return reach;
}

bool reads_tokens_between(const Bias& bias) noexcept {
  return with_term(bias, [](const auto&, auto term) { return term.reads_tokens_between; });
}

std::int64_t features(const Bias& bias) noexcept {
  return with_term(bias, [](const auto& source, auto term) { return term.features(source); });
}

Cost cost(const Bias& bias, const CostSizes& sizes) noexcept {
  return with_term(bias, [&](const auto& source, auto term) { return term.cost(source, sizes); });
}

ConstTensorView weights(const Bias& bias) noexcept {
  return with_term(bias, [](const auto& source, auto term) { return term.weights(source); });
}

VectorTables vectors(const Bias& bias) noexcept {
  return with_term(bias, [&](const auto& source, auto term) { return term.vectors(source, bias.heads); });
}

double vector_scale(const Bias& bias, double scale) noexcept {
  return with_term(bias, [&](const auto& source, auto term) { return term.vector_scale(source, scale); });
}

Bias of_scores(const Bias& bias) {
  return with_term(bias, [&](const auto& source, auto term) { return Bias{bias.heads, term.of_scores(source)}; });
}

double element(const Bias& bias, const Score& at) {
  return with_term(bias, [&](const auto& source, auto term) { return term.element(source, bias.heads, at); });
}

Extents parameters(const Bias& bias) noexcept {
  return with_term(bias, [&](const auto& source, auto term) { return term.parameters(source, bias.heads); });
}

std::int64_t head_parameters(const Bias& bias) noexcept {
  return with_term(bias, [&](const auto& source, auto term) { return term.head_parameters(source, bias.heads); });
}

void add_gradient(const Bias& bias, const Score& at, double ds, double* sums) {
  with_term(bias, [&](const auto& source, auto term) { term.add_gradient(source, bias.heads, at, ds, sums); });
}

double gradient(const Bias& bias, const double* sums, std::int64_t index) {
  return with_term(bias, [&](const auto& source, auto term) {
    return term.gradient(source, bias.heads, sums, term.head_parameters(source, bias.heads), index);
  });
}

}  // namespace terms
}  // namespace posenc
