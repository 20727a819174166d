// The definition of bias, as plain as possible: one score at a time.

#include "kernels/bias_element.h"

namespace posenc::kernels::reference {
namespace {

struct BiasAt {
  const Bias& form;
  std::int64_t head;
  const QueryAndKey& pair;

  double operator()(const Slopes& source) const {
    return slope_bias(source.slopes[static_cast<std::size_t>(head)], pair.distance());
  }
  double operator()(const DistanceTable& source) const {
    return table_element<double>(table_of(source, form.heads), row_of(source, pair), head);
  }
  double operator()(const DistanceRatios& source) const {
    std::vector<double> hidden(source.hidden_weights.size());
    fill_hidden(source, ratio_of(source, pair.query(), pair.distance()), hidden.data());
    return mapped_ratio(source, static_cast<std::size_t>(head), hidden.data());
  }
  double operator()(const DistanceVectors&) const { return 0.0; }  // rejected before
  double operator()(const GateSums&) const { return 0.0; }
  double operator()(const CountedGates&) const { return 0.0; }
};

template <class T> void write(const BiasJob& job) {
  for (std::int64_t b = 0; b < job.out.batch; ++b) {
    for (std::int64_t h = 0; h < job.out.heads; ++h) {
      for (std::int64_t i = 0; i < job.out.sequence; ++i) {
        T* row = job.out.row<T>(b, h, i);
        for (std::int64_t j = 0; j < job.out.features; ++j) {
          const QueryAndKey pair{job.queries, job.keys, b, i, j};
          row[j * job.out.feature_stride] =
              numerics::narrow<T>(std::visit(BiasAt{*job.form, h, pair}, job.form->source));
        }
      }
    }
  }
}

}  // namespace

void bias(const BiasJob& job) {
  with_type(job.out.type, [&](auto kind) { write<decltype(kind)>(job); });
}

}  // namespace posenc::kernels::reference
