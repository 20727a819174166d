// One thread computes each head's sums in the order of the scores, so results do not depend on the number of threads.

#include "kernels/bias_gradients.h"
#include "kernels/cpu/parallel.h"

namespace posenc::kernels::cpu {

void bias_backward(const BiasBackwardJob& job) {
  add_bias_gradients(job, [](std::int64_t heads, const auto& work) { parallel_for(heads, 1, work); });
}

}  // namespace posenc::kernels::cpu
