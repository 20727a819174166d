#include "kernels/job.h"

namespace posenc::kernels {

namespace reference {
Outcome add(const AddJob& job);
void add_backward(const AddBackwardJob& job);
Outcome rotate(const RotateJob& job);
}  // namespace reference

const Backend kReferenceBackend = {"reference", &reference::add, &reference::add_backward, &reference::rotate};

}  // namespace posenc::kernels
