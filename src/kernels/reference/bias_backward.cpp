#include "kernels/bias_element.h"

namespace posenc::kernels::reference {
namespace {

template <class G> void accumulate(const BiasBackwardJob& job) {
  const Bias& form = *job.form;
  if (const auto* ratios = std::get_if<DistanceRatios>(&form.source)) return ratios_backward<G>(job, *ratios);
  const auto* const table = std::get_if<DistanceTable>(&form.source);
  for (std::int64_t b = 0; b < job.gradient.batch; ++b) {
    for (std::int64_t h = 0; h < form.heads; ++h) {
      for (std::int64_t i = 0; i < job.gradient.sequence; ++i) {
        const G* row = job.gradient.row<G>(b, h, i);
        for (std::int64_t j = 0; j < job.gradient.features; ++j) {
          const QueryAndKey pair{job.queries, job.keys, b, i, j};
          const double slope = numerics::widen(row[j * job.gradient.feature_stride]);
          if (table != nullptr) {
            job.sums[row_of(*table, pair) * form.heads + h] += slope;
          } else {
            job.sums[h] += slope * slope_bias(1.0, pair.distance());
          }
        }
      }
    }
  }
}

}  // namespace

void bias_backward(const BiasBackwardJob& job) {
  with_type(job.gradient.type, [&](auto kind) { accumulate<decltype(kind)>(job); });
}

}  // namespace posenc::kernels::reference
