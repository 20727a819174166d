#include "kernels/element.h"

namespace posenc::kernels::reference {
namespace {

template <class T, class G> void accumulate(const AddBackwardJob& job) {
  const std::size_t width = job.table.width;
  std::vector<double> sums(static_cast<std::size_t>(job.table.sequence) * width);
  std::vector<bool> touched(job.table.sequence);
  for (std::int64_t b = 0; b < job.gradient.batch; ++b) {
    for (std::int64_t t = 0; t < job.gradient.sequence; ++t) {
      const std::size_t row = job.positions.at(b, t) + job.offset;
      const G* gradient = job.gradient.token<G>(b, t);
      touched[row] = true;
      for (std::size_t c = 0; c < width; ++c) {
        sums[row * width + c] += numerics::widen(gradient[static_cast<std::int64_t>(c) * job.gradient.column_stride]);
      }
    }
  }
  for (std::size_t row = 0; row < touched.size(); ++row) {
    if (!touched[row]) continue;
    T* out = job.table.token<T>(0, static_cast<std::int64_t>(row));
    for (std::size_t c = 0; c < width; ++c) {
      T& element = out[static_cast<std::int64_t>(c) * job.table.column_stride];
      element = numerics::narrow<T>(numerics::widen(element) + sums[row * width + c]);
    }
  }
}

}  // namespace

void add_backward(const AddBackwardJob& job) {
  with_type(job.table.type, [&](auto table) {
    with_type(job.gradient.type, [&](auto gradient) { accumulate<decltype(table), decltype(gradient)>(job); });
  });
}

}  // namespace posenc::kernels::reference
