#include "kernels/job.h"

namespace posenc::kernels {

namespace reference {
Outcome add(const AddJob& job);
void add_backward(const AddBackwardJob& job);
Outcome rotate(const RotateJob& job);
void bias(const BiasJob& job);
void bias_backward(const BiasBackwardJob& job);
}  // namespace reference

const Backend kReferenceBackend = {"reference",        &reference::add,  &reference::add_backward,
                                   &reference::rotate, &reference::bias, &reference::bias_backward};

}  // namespace posenc::kernels
