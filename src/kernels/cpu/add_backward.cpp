// The gradient of a learned table: tokens are sorted by their row, then one thread sums each row in the order of the
// tokens. Nothing is added concurrently, so results do not depend on the number of threads.

#include <algorithm>
#include <numeric>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_math.h"
#include "kernels/element.h"

namespace posenc::kernels::cpu {
namespace {

template <class G> void add_to_sums(double* sums, const G* gradient, std::int64_t step, std::int64_t width) {
  if constexpr (std::is_same_v<G, float>) {
    if (step == 1) return sum_row(sums, gradient, width);
  }
  for (std::int64_t c = 0; c < width; ++c) sums[c] += numerics::widen(gradient[c * step]);
}

template <class T, class G> void accumulate(const AddBackwardJob& job) {
  const std::int64_t tokens = job.gradient.batch * job.gradient.sequence, width = job.table.width;
  const auto row_of = [&](std::int64_t token) {
    return job.positions.at(token / job.gradient.sequence, token % job.gradient.sequence) + job.offset;
  };
  std::vector<std::int64_t> order(tokens);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return row_of(a) < row_of(b); });
  std::vector<std::size_t> starts;  // where each row's tokens begin in `order`
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || row_of(order[i]) != row_of(order[i - 1])) starts.push_back(i);
  }
  starts.push_back(order.size());

  parallel_for(static_cast<std::int64_t>(starts.size()) - 1, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> sums(width);
    for (auto r = static_cast<std::size_t>(begin); r < static_cast<std::size_t>(end); ++r) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::size_t i = starts[r]; i < starts[r + 1]; ++i) {
        const G* gradient = job.gradient.token<G>(order[i] / job.gradient.sequence, order[i] % job.gradient.sequence);
        add_to_sums(sums.data(), gradient, job.gradient.column_stride, width);
      }
      T* out = job.table.token<T>(0, row_of(order[starts[r]]));
      for (std::int64_t c = 0; c < width; ++c) {
        T& element = out[c * job.table.column_stride];
        element = numerics::narrow<T>(numerics::widen(element) + sums[c]);
      }
    }
  });
}

}  // namespace

void add_backward(const AddBackwardJob& job) {
  with_type(job.table.type, [&](auto table) {
    with_type(job.gradient.type, [&](auto gradient) { accumulate<decltype(table), decltype(gradient)>(job); });
  });
}

}  // namespace posenc::kernels::cpu
