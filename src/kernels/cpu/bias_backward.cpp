// One thread computes each head's sums in the order of the scores, so results do not depend on the number of threads.

#include "kernels/bias_element.h"
#include "kernels/cpu/parallel.h"

namespace posenc::kernels::cpu {
namespace {

// Calls take(row, gradient) for every score of a head, in order; `row_at` finds the row.
template <class G, class RowAt, class Take>
void for_each_score(const BiasBackwardJob& job, std::int64_t h, const RowAt& row_at, const Take& take) {
  for (std::int64_t b = 0; b < job.gradient.batch; ++b) {
    for (std::int64_t i = 0; i < job.gradient.sequence; ++i) {
      const G* row = job.gradient.row<G>(b, h, i);
      for (std::int64_t j = 0; j < job.gradient.features; ++j) {
        take(row_at(QueryAndKey{job.queries, job.keys, b, i, j}),
             numerics::widen(row[j * job.gradient.feature_stride]));
      }
    }
  }
}

template <class G> void accumulate(const BiasBackwardJob& job) {
  const Bias& form = *job.form;
  if (const auto* ratios = std::get_if<DistanceRatios>(&form.source)) return ratios_backward<G>(job, *ratios);
  const auto* const table = std::get_if<DistanceTable>(&form.source);
  const std::int64_t rows = table == nullptr ? 1 : table_of(*table, form.heads).shape[0];
  parallel_for(form.heads, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sums(static_cast<std::size_t>(rows));
    for (std::int64_t h = begin; h < end; ++h) {
      std::fill(sums.begin(), sums.end(), 0.0);
      if (table != nullptr) {
        const auto row_at = [&](const QueryAndKey& pair) { return row_of(*table, pair); };
        for_each_score<G>(job, h, row_at,
                          [&](std::int64_t row, double slope) { sums[static_cast<std::size_t>(row)] += slope; });
      } else {
        const auto distance_of = [](const QueryAndKey& pair) { return pair.distance(); };
        for_each_score<G>(job, h, distance_of, [&](std::int64_t distance, double slope) {
          sums.front() += slope * slope_bias(1.0, distance);
        });
      }
      for (std::int64_t row = 0; row < rows; ++row)
        job.sums[row * form.heads + h] += sums[static_cast<std::size_t>(row)];
    }
  });
}

}  // namespace

void bias_backward(const BiasBackwardJob& job) {
  with_type(job.gradient.type, [&](auto kind) { accumulate<decltype(kind)>(job); });
}

}  // namespace posenc::kernels::cpu
