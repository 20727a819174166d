#include "terms/distance_ratios/distance_ratios.h"

#include "terms/tables.h"

namespace posenc::terms {

void Term<DistanceRatios>::check(std::string_view verb, const DistanceRatios& source, std::int64_t heads) {
  const std::size_t width = source.hidden_weights.size(), count = heads;
  check_size(verb, "hidden biases", source.hidden_biases.size(), width);
  check_size(verb, "output weights", source.output_weights.size(), count * width);
  check_size(verb, "output biases", source.output_biases.size(), count);
}

DistanceRatios Term<DistanceRatios>::some_heads(const DistanceRatios& all, std::int64_t, const HeadRange& range) {
  DistanceRatios some = all;
  const auto weights = all.output_weights.begin() + range.first * width_of(all);
  some.output_weights.assign(weights, weights + range.count * width_of(all));
  const auto biases = all.output_biases.begin() + range.first;
  some.output_biases.assign(biases, biases + range.count);
  return some;
}

Cost Term<DistanceRatios>::cost(const DistanceRatios& source, const CostSizes& sizes) {
  const std::int64_t width = width_of(source);
  // the ratio; a product, a sum and a product for each hidden unit, summed; the output's own bias and the score
  return {.operations = sizes.keys * (1 + 4 * width + 2), .numbers = sizes.keys + 3 * width + 1};
}

void Term<DistanceRatios>::add_gradient(const DistanceRatios& source, std::int64_t, const Score& at, double ds,
                                        double* sums) {
  const std::size_t width = source.hidden_weights.size();
  const double ratio = ratio_of(source, at);
  for (std::size_t u = 0; u < width; ++u) {
    const double hidden = source.hidden_weights[u] * ratio + source.hidden_biases[u];
    if (hidden <= 0) continue;
    const double d_hidden = ds * source.output_weights[at.h * width + u];
    sums[u] += d_hidden * ratio;
    sums[width + u] += d_hidden;
    sums[2 * width + u] += ds * hidden;
  }
  sums[3 * width] += ds;
}

double Term<DistanceRatios>::gradient(const DistanceRatios& source, std::int64_t heads, const double* sums,
                                      std::int64_t in_head, std::int64_t index) {
  const std::int64_t width = width_of(source), past = index - 2 * width;
  if (past >= heads * width) return sums[(past - heads * width) * in_head + 3 * width];
  if (past >= 0) return sums[past / width * in_head + 2 * width + past % width];
  double shared = 0;
  for (std::int64_t h = 0; h < heads; ++h) shared += sums[h * in_head + index];
  return shared;
}

void Term<DistanceRatios>::add_gradients(const DistanceRatios& source, const Score& at, const double* d_scores,
                                         double* sums) {
  const std::size_t width = source.hidden_weights.size(), heads = source.output_biases.size();
  double* const d_hidden_biases = sums + width;
  double* const d_output_weights = d_hidden_biases + width;
  double* const d_output_biases = d_output_weights + heads * width;
  const double ratio = ratio_of(source, at);
  for (std::size_t h = 0; h < heads; ++h) d_output_biases[h] += d_scores[h];
  for (std::size_t u = 0; u < width; ++u) {
    const double hidden = hidden_unit(source, u, ratio);
    double d_hidden = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      d_output_weights[h * width + u] += d_scores[h] * hidden;
      d_hidden += d_scores[h] * source.output_weights[h * width + u];
    }
    if (hidden == 0) continue;
    sums[u] += d_hidden * ratio;
    d_hidden_biases[u] += d_hidden;
  }
}

}  // namespace posenc::terms
