#include "properties/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "posenc/error.h"
#include "properties/rows.h"
#include "schemes/random.h"

namespace posenc {
namespace {

constexpr std::int64_t kFeatures = 16;            // of vectors that meet queries and keys
constexpr std::int64_t kHeads = 4;                // of a network that nobody trained
constexpr std::int64_t kHiddenUnits = 8;          // and its width
constexpr std::int64_t kWidth = 64;               // see schemes_to_prove
constexpr std::int64_t kMostNumbers = 1 << 26;    // of a table that is drawn: half a gigabyte
constexpr std::int64_t kLongestBiasTable = 4096;  // of distances: what is made for a length is made for all of it

// The shapes of the tables that a scheme takes from its caller; most take none.
template <class S> Extents table_shape(const S&) { return {}; }
Extents table_shape(const Learned& scheme) { return {scheme.rows, scheme.width}; }
Extents table_shape(const T5& scheme) { return {scheme.buckets, scheme.heads}; }
Extents table_shape(const Swin& scheme) {
  std::int64_t rows = 1;
  for (const std::int64_t extent : scheme.window) rows *= std::clamp<std::int64_t>(2 * extent - 1, 0, 1 << 13);
  return {rows, scheme.heads};
}
Extents table_shape(const Shaw& scheme) { return {scheme.left + scheme.right + 1, kFeatures}; }
Extents table_shape(const Deberta& scheme) {
  return {2 * (scheme.buckets > 0 ? scheme.buckets : scheme.max_distance), kFeatures};
}
bool has_key_table(const Scheme& scheme) { return std::holds_alternative<Deberta>(scheme); }

std::vector<double> drawn(std::int64_t count, schemes::Random& random) {
  std::vector<double> values(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  for (double& value : values) value = random.uniform();
  return values;
}

// Trained numbers that are fields, where the scheme leaves them out.
template <class S> bool draw_fields(S&, schemes::Random&) { return false; }
bool draw_fields(Fire& scheme, schemes::Random& random) {
  if (!scheme.hidden_weights.empty() || !scheme.output_biases.empty()) return false;
  scheme.hidden_weights = drawn(kHiddenUnits, random);
  scheme.hidden_biases = drawn(kHiddenUnits, random);
  scheme.output_weights = drawn(kHeads * kHiddenUnits, random);
  scheme.output_biases = drawn(kHeads, random);
  return true;
}
bool draw_fields(Rope& scheme, schemes::Random& random) {
  auto* const scaling = std::get_if<LongropeScaling>(&scheme.scaling);
  if (scaling == nullptr || !scaling->short_factors.empty() || !scaling->long_factors.empty()) return false;
  // searched factors lie above 1
  for (std::vector<double>* const factors : {&scaling->short_factors, &scaling->long_factors}) {
    *factors = drawn(scheme.dims / 2, random);
    for (double& factor : *factors) factor = 2 + factor;
  }
  return true;
}

void draw_tables(Trial& trial, schemes::Random& random) {
  const Extents shape = std::visit([](const auto& scheme) { return table_shape(scheme); }, *trial.scheme);
  if (shape.rank == 0 || trial.options.weights.data != nullptr) return;
  const std::int64_t count = count_of(shape);
  if (count > kMostNumbers) raise(fmt::format("prove: a table of {} is too large to draw", to_string(shape)));
  trial.has_random_weights = true;
  trial.weights = drawn(count, random);
  if (has_key_table(*trial.scheme)) trial.key_weights = drawn(count, random);
}

bool is_bias(const Scheme& scheme) {
  return std::visit([]<class S>(const S&) { return S::family == "bias"; }, scheme);
}

void check(const ProveOptions& options) {
  if (options.length >= 2 && options.length <= kPositionLimit) return;
  raise(fmt::format("prove: length must be between 2 and {} but is {}", kPositionLimit, options.length));
}

}  // namespace

Trial make_trial(const Scheme& scheme, const ProveOptions& options) {
  check(options);
  Trial trial;
  trial.scheme = scheme;
  trial.options = options;
  schemes::Random random(options.seed);
  trial.has_random_weights = std::visit([&](auto& one) { return draw_fields(one, random); }, *trial.scheme);
  draw_tables(trial, random);
  trial.form = properties::form_for(trial, options.length);
  trial.length = std::min(options.length, reach_of(trial.form));
  return trial;
}

Trial make_trial(const Form& form, const ProveOptions& options) {
  check(options);
  Trial trial;
  trial.options = options;
  trial.form = form;
  trial.length = std::min(options.length, reach_of(form));
  return trial;
}

Scheme for_proving(Scheme scheme) {
  const auto narrow = []<class S>(S& one) {
    S::fields([&](std::string_view name, auto member, std::string_view) {
      if constexpr (std::is_same_v<std::remove_reference_t<decltype(one.*member)>, std::int64_t>) {
        if (name == "width") one.*member = kWidth;
      }
    });
  };
  std::visit(narrow, scheme);
  return scheme;
}

std::vector<Scheme> schemes_to_prove() {
  std::vector<Scheme> schemes;
  for (const std::string_view name : scheme_names()) schemes.push_back(for_proving(scheme_named(name)));
  return schemes;
}

namespace properties {

Form form_for(const Trial& trial, std::int64_t length) {
  if (!trial.scheme) return trial.form;
  Situation now;
  now.length = is_bias(*trial.scheme) ? std::min(length, kLongestBiasTable) : length;
  now.numerics = trial.options.numerics;
  const Extents shape = std::visit([](const auto& scheme) { return table_shape(scheme); }, *trial.scheme);
  now.weights = trial.options.weights;
  now.key_weights = trial.options.key_weights;
  if (!trial.weights.empty()) now.weights = view(trial.weights.data(), shape);
  if (!trial.key_weights.empty()) now.key_weights = view(trial.key_weights.data(), shape);
  return prepare(*trial.scheme, now);
}

}  // namespace properties
}  // namespace posenc
