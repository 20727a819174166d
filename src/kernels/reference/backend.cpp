#include "kernels/job.h"

namespace posenc::kernels {

namespace reference {
Outcome add(const AddJob& job);
void add_backward(const AddBackwardJob& job);
}  // namespace reference

const Backend kReferenceBackend = {"reference", &reference::add, &reference::add_backward};

}  // namespace posenc::kernels
