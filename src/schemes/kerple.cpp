#include "posenc/schemes/kerple.h"

#include "numerics/logarithm.h"
#include "schemes/check.h"
#include "schemes/distance_table.h"

namespace posenc {
namespace {

using numerics::Wide;

void check_positive(std::string_view field, const std::vector<double>& values) {
  for (const double value : values) {
    if (value > 0 && std::isfinite(value)) continue;
    raise(fmt::format("kerple: {} must be above 0 and finite but one is {}", field, value));
  }
}

void check(const Kerple& s) {
  schemes::check_between(Kerple::name, "number of amplitudes", static_cast<std::int64_t>(s.amplitudes.size()), 1,
                         schemes::kHeadLimit);
  if (s.rates.size() != s.amplitudes.size()) {
    raise(fmt::format("kerple: rates must be as many as amplitudes, {}, but are {}", s.amplitudes.size(),
                      s.rates.size()));
  }
  check_positive("amplitudes", s.amplitudes);
  check_positive("rates", s.rates);
  if (s.kernel == KerpleKernel::kLog) return;
  for (const double rate : s.rates) {
    if (rate > 2) raise(fmt::format("kerple: rates of the power kernel must be at most 2 but one is {}", rate));
  }
}

// ln(1 + r·d)
Wide log_kernel(double rate, double distance) {
  return numerics::log_of(numerics::sum_of({1.0, 0.0}, numerics::exact_product(rate, distance)));
}

// d^r
Wide power_kernel(double rate, double distance) {
  if (distance == 0) return {};
  return numerics::exp_of(numerics::product_of({rate, 0.0}, numerics::log_of({distance, 0.0})));
}

}  // namespace

Bias prepare(const Kerple& s, const PrepareOptions& options) {
  check(s);
  const auto heads = static_cast<std::int64_t>(s.amplitudes.size());
  const auto kernel = s.kernel == KerpleKernel::kLog ? log_kernel : power_kernel;
  return {heads,
          schemes::table_by_distance(Kerple::name, options.length, heads, [&](std::int64_t distance, double* row) {
            for (std::size_t h = 0; h < s.amplitudes.size(); ++h) {
              const Wide value = kernel(s.rates[h], static_cast<double>(distance));
              // 0 is 0, not −0
              row[h] = 0.0 - numerics::product_of({s.amplitudes[h], 0.0}, value).high;
            }
          })};
}

KerpleGradient backward(const Kerple& s, std::span<const double> d_table) {
  check(s);
  const std::size_t heads = s.amplitudes.size();
  if (d_table.size() % heads != 0) {
    raise(fmt::format("kerple: a gradient of {} numbers does not divide into {} heads", d_table.size(), heads));
  }
  KerpleGradient gradient{std::vector<double>(heads), std::vector<double>(heads)};
  for (std::size_t i = 0; i < d_table.size(); ++i) {
    const std::size_t h = i % heads, row = i / heads;
    const auto distance = static_cast<double>(row);
    const double amplitude = s.amplitudes[h], rate = s.rates[h];
    if (s.kernel == KerpleKernel::kLog) {
      gradient.amplitudes[h] -= d_table[i] * log_kernel(rate, distance).high;
      gradient.rates[h] -= d_table[i] * amplitude * distance / (1 + rate * distance);
    } else if (distance > 0) {
      const double power = power_kernel(rate, distance).high;
      gradient.amplitudes[h] -= d_table[i] * power;
      gradient.rates[h] -= d_table[i] * amplitude * power * numerics::log_of({distance, 0.0}).high;
    }
  }
  return gradient;
}

}  // namespace posenc
