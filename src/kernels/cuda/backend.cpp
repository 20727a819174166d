#include "kernels/cuda/driver.h"
#include "kernels/job.h"

namespace posenc::kernels {

namespace cuda {
Outcome add(const AddJob& job);
void add_backward(const AddBackwardJob& job);
Outcome rotate(const RotateJob& job);
void bias(const BiasJob& job);
void bias_backward(const BiasBackwardJob& job);
void write_slots(const SlotJob& job);

namespace {
constexpr Backend kBackend = {"cuda", &add,           &add_backward, &rotate,
                              &bias,  &bias_backward, &write_slots,  /*rotates_to_slots=*/false};
}  // namespace
}  // namespace cuda

const Backend* cuda_backend() { return cuda::find_driver() != nullptr ? &cuda::kBackend : nullptr; }

}  // namespace posenc::kernels
