#include "posenc/schemes/fire.h"

#include "numerics/logarithm.h"
#include "schemes/check.h"
#include "schemes/distance_table.h"

namespace posenc {
namespace {

void check_list(std::string_view field, const std::vector<double>& values, std::size_t count, std::string_view rule) {
  if (values.size() != count) {
    raise(fmt::format("fire: {} must be {}, {}, but are {}", field, rule, count, values.size()));
  }
  for (const double value : values) schemes::check_finite(Fire::name, field, value);
}

void check(const Fire& s) {
  schemes::check_finite(Fire::name, "c", s.c);
  if (s.c == 0) raise("fire: c must not be 0");
  if (!(s.threshold > 0) || !std::isfinite(s.threshold)) {
    raise(fmt::format("fire: threshold must be above 0 and finite but is {}", s.threshold));
  }
  if (!(s.epsilon >= 0) || !std::isfinite(s.epsilon)) {
    raise(fmt::format("fire: epsilon must be at least 0 and finite but is {}", s.epsilon));
  }
  if (s.hidden_weights.empty() || s.output_biases.empty()) {
    raise("fire: the trained network is missing (hidden_weights, hidden_biases, output_weights, output_biases)");
  }
  const std::size_t width = s.hidden_weights.size(), heads = s.output_biases.size();
  check_list("hidden_weights", s.hidden_weights, width, "");
  check_list("hidden_biases", s.hidden_biases, width, "as many as hidden_weights");
  check_list("output_weights", s.output_weights, heads * width, "heads times hidden units");
  check_list("output_biases", s.output_biases, heads, "");
}

// ψ(x) = ln(|c|·x + 1)
double squeezed(double c, double x) {
  return numerics::log_of(numerics::sum_of({1.0, 0.0}, numerics::exact_product(std::fabs(c), x))).high;
}

}  // namespace

Bias prepare(const Fire& s, const PrepareOptions& options) {
  check(s);
  schemes::check_table_length(Fire::name, options.length);
  DistanceRatios source;
  for (std::int64_t x = 0; x < options.length; ++x) source.logs.push_back(squeezed(s.c, static_cast<double>(x)));
  source.least = squeezed(s.c, s.threshold);
  source.epsilon = s.epsilon;
  source.hidden_weights = s.hidden_weights;
  source.hidden_biases = s.hidden_biases;
  source.output_weights = s.output_weights;
  source.output_biases = s.output_biases;
  return {static_cast<std::int64_t>(s.output_biases.size()), std::move(source)};
}

}  // namespace posenc
