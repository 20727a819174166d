#include "cli/plots/bias_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/plots/position_table.h"
#include "cli/system/failure.h"
#include "posenc/apply.h"
#include "posenc/json.h"

namespace posenc::cli {
namespace {

// Row n of the table is n: the bias is then the bucket itself.
Bias buckets_as_bias(const T5& scheme) {
  DistanceTable table;
  table.axes = {buckets_of(scheme)};
  const auto& entries = table.axes.front().entries;
  const std::int64_t last = *std::max_element(entries.begin(), entries.end());
  for (std::int64_t row = 0; row <= last; ++row) table.values.push_back(static_cast<double>(row));
  return {1, std::move(table)};
}

}  // namespace

bool is_bias_scheme(const Scheme& scheme) {
  return std::visit([]<class S>(const S&) { return S::family == "bias"; }, scheme);
}

BiasValues bias_values(const PlottedScheme& scheme, const PlotRequest& request, std::int64_t length) {
  const std::string_view name = name_of(scheme.request.scheme);
  if (!is_bias_scheme(scheme.request.scheme)) {
    refuse(fmt::format("{}: adds nothing to the scores; alibi, t5, kerple, fire and sandwich do", name));
  }
  const auto* const t5 = std::get_if<T5>(&scheme.request.scheme);
  if (t5 != nullptr && scheme.weights.view().data == nullptr) return {buckets_as_bias(*t5), true};
  if (std::holds_alternative<Shaw>(scheme.request.scheme) || std::holds_alternative<Deberta>(scheme.request.scheme)) {
    refuse(fmt::format("{}: depends on q and k, so it has no numbers of its own to draw", name));
  }
  const Situation now{.length = std::max(length, request.length), .numerics = request.numerics};
  BiasValues bias{std::get<Bias>(form_of(scheme.request, now, scheme.weights)), false};
  if (position_axes_of(bias.form) != 1) {
    refuse(fmt::format("{}: positions have several axes, and figures have one", name));
  }
  return bias;
}

std::vector<double> bias_between(const BiasValues& bias, const std::vector<std::int64_t>& queries,
                                 const std::vector<std::int64_t>& keys) {
  const auto rows = static_cast<std::int64_t>(queries.size()), columns = static_cast<std::int64_t>(keys.size());
  std::vector<double> values(static_cast<std::size_t>(bias.form.heads * rows * columns));
  posenc::bias(view(values.data(), {bias.form.heads, rows, columns}), {.ids = queries}, {.ids = keys}, bias.form);
  return values;
}

std::vector<std::vector<double>> bias_by_distance(const BiasValues& bias, const WholeRange& distances) {
  const std::int64_t query = distances.to - 1;
  std::vector<std::int64_t> keys;
  for (std::int64_t distance = distances.from; distance < distances.to; ++distance) keys.push_back(query - distance);
  const std::vector<double> values = bias_between(bias, {query}, keys);
  std::vector<std::vector<double>> heads;
  for (auto row = values.begin(); row != values.end(); row += distances.count()) {
    heads.emplace_back(row, row + distances.count());
  }
  return heads;
}

std::string label_of(const PlottedScheme& scheme, const std::vector<PlottedScheme>& all) {
  const std::string_view name = name_of(scheme.request.scheme);
  const auto has_name = [&](const PlottedScheme& other) { return name_of(other.request.scheme) == name; };
  if (std::count_if(all.begin(), all.end(), has_name) < 2) return std::string(name);
  // what the schemes of this name do not agree on
  const Json json = parse_json(to_json(scheme.request.scheme));
  std::string text(name);
  for (const auto& [key, value] : *json.as<Json::Object>()) {
    const auto differs = [&, &field = key, &mine = value](const PlottedScheme& other) {
      if (!has_name(other)) return false;
      const Json theirs = parse_json(to_json(other.request.scheme));
      return theirs.find(field) != nullptr && *theirs.find(field) != mine;
    };
    if (!std::any_of(all.begin(), all.end(), differs)) continue;
    const Json* const type = value.find("type");
    const auto* const word = type != nullptr ? type->as<std::string>() : value.as<std::string>();
    const auto* const number = value.as<double>();
    text += fmt::format(" {} {}", key,
                        word != nullptr     ? *word
                        : number != nullptr ? fmt::format("{}", *number)
                                            : dump_json(value).substr(0, 16));
  }
  return text;
}

}  // namespace posenc::cli
