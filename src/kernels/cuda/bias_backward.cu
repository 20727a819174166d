// The gradient of a bias's parameters, in double. A block takes one head and a share of its queries, 256 scores at a
// time: each thread puts one score's gradient into shared memory, with what it contributes to (a row of the table, a
// distance, a ratio). Then `owners` threads, each of which owns a parameter, sum over them; if there are fewer
// parameters than threads, several threads own the same one and take turns. The order of all sums depends only on the
// shapes.

#include "kernels/cuda/biases.cuh"

namespace posenc::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;

}  // namespace

extern "C" __global__ void __launch_bounds__(256) bias_backward(const __grid_constant__ BiasBackwardParams p) {
  __shared__ double gradients[kThreads], values[kThreads];
  __shared__ std::int64_t rows[kThreads];
  const BiasParams& bias = p.bias;
  const std::int64_t h = block() % bias.heads, share = block() / bias.heads;
  const auto owners = static_cast<unsigned>(p.owners);
  const unsigned own = thread() % owners, turn = thread() / owners, turns = kThreads / owners;
  const std::int64_t first_query = share * p.queries_of_share, all_queries = bias.batch * bias.queries;
  const std::int64_t end_query =
      first_query + p.queries_of_share < all_queries ? first_query + p.queries_of_share : all_queries;
  const std::int64_t scores = (end_query - first_query) * bias.keys;
  double* const out = p.parts + (share * bias.heads + h) * p.count;

  for (std::int64_t first = 0; first < p.owned; first += owners) {
    const std::int64_t mine = first + own;
    const bool has_unit = bias.kind == kBiasRatios && mine < bias.width;
    const double weight = has_unit ? bias.hidden_weights[mine] : 0, offset = has_unit ? bias.hidden_biases[mine] : 0,
                 output = has_unit ? bias.output_weights[h * bias.width + mine] : 0;
    double sums[4] = {0, 0, 0, 0};
    for (std::int64_t n0 = 0; n0 < scores; n0 += kThreads) {
      const std::int64_t n = n0 + thread();
      double gradient = 0, value = 0;
      std::int64_t row = -1;
      if (n < scores) {
        const std::int64_t query = first_query + n / bias.keys;
        const ScorePlace at{query / bias.queries, query % bias.queries, n % bias.keys};
        gradient = load(bias.scores.data, bias.scores.type,
                        at.b * bias.scores.batch_stride + h * bias.scores.head_stride +
                            at.i * bias.scores.token_stride + at.j * bias.scores.feature_stride);
        if (bias.kind == kBiasTable) {
          row = row_of(bias, at);
        } else {
          value = bias.kind == kBiasSlopes ? 0.0 - size_of_distance(bias, at) : ratio_of(bias, at);
        }
      }
      gradients[thread()] = gradient, values[thread()] = value, rows[thread()] = row;
      sync_block();
      for (unsigned m = turn; m < kThreads && n0 + m < scores; m += turns) {
        const double g = gradients[m];
        if (bias.kind == kBiasTable) {
          if (rows[m] == mine) sums[0] += g;
        } else if (bias.kind == kBiasSlopes) {
          sums[0] += g * values[m];
        } else {
          const double hidden = weight * values[m] + offset;
          sums[3] += g;
          if (!(hidden > 0)) continue;
          const double d_hidden = g * output;
          sums[0] += d_hidden * values[m];
          sums[1] += d_hidden;
          sums[2] += g * hidden;
        }
      }
      sync_block();
    }
    const int kinds = bias.kind == kBiasRatios ? 4 : 1;
    for (int kind = 0; kind < kinds; ++kind) {
      gradients[thread()] = kind == 0 ? sums[0] : kind == 1 ? sums[1] : kind == 2 ? sums[2] : sums[3];
      sync_block();
      double sum = 0;
      for (unsigned other = 0; turn == 0 && other < turns; ++other) sum += gradients[other * owners + own];
      if (turn == 0 && mine < p.owned && kind < 3) out[kind * p.owned + mine] = sum;
      if (turn == 0 && mine == 0 && kind == 3) out[3 * p.owned] = sum;
      sync_block();
    }
  }
}

}  // namespace posenc::kernels::cuda
