#include "kernels/bias_gradients.h"

namespace posenc::kernels::reference {

void bias_backward(const BiasBackwardJob& job) {
  add_bias_gradients(job, [](std::int64_t heads, const auto& work) { work(0, heads); });
}

}  // namespace posenc::kernels::reference
