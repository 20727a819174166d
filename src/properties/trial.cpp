#include "properties/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "posenc/error.h"
#include "posenc/random.h"

namespace posenc {
namespace {

constexpr std::int64_t kFeatures = 16;            // of relative-position vectors
constexpr std::int64_t kWidth = 64;               // see schemes_to_prove
constexpr std::int64_t kMostNumbers = 1 << 26;    // of a random table: half a gigabyte
constexpr std::int64_t kLongestBiasTable = 4096;  // in distances and positions, if a form covers a length

std::vector<double> drawn(std::int64_t count, Random& random) {
  std::vector<double> values(std::max<std::int64_t>(count, 0));
  for (double& value : values) value = random.uniform();
  return values;
}

void draw_tables(Trial& trial, Random& random) {
  const TrainedTable table = trained_table_of(*trial.scheme);
  const Extents shape = shape_of(table, kFeatures);
  if (shape.rank == 0 || trial.options.weights.data != nullptr) return;
  const std::int64_t count = count_of(shape);
  if (count > kMostNumbers) raise(fmt::format("prove: a table of {} is too large to draw", to_string(shape)));
  trial.has_random_weights = true;
  trial.weights = drawn(count, random);
  if (table.has_key_weights) trial.key_weights = drawn(count, random);
  if (table.has_value_weights) trial.value_weights = drawn(count, random);
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
  Random random(static_cast<std::uint64_t>(options.seed));
  trial.has_random_weights = draw_trained(*trial.scheme, [&] { return random.uniform(); });
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
  PrepareOptions options;
  const bool is_whole = length_need_of(*trial.scheme) == LengthNeed::kSequence;
  options.length = is_whole ? length : std::min(length, kLongestBiasTable);
  options.numerics = trial.options.numerics;
  const Extents shape = shape_of(trained_table_of(*trial.scheme), kFeatures);
  options.weights = trial.options.weights;
  options.key_weights = trial.options.key_weights;
  options.value_weights = trial.options.value_weights;
  if (!trial.weights.empty()) options.weights = view(trial.weights.data(), shape);
  if (!trial.key_weights.empty()) options.key_weights = view(trial.key_weights.data(), shape);
  if (!trial.value_weights.empty()) options.value_weights = view(trial.value_weights.data(), shape);
  return prepare(*trial.scheme, options);
}

}  // namespace properties
}  // namespace posenc
