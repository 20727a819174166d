#include "kernels/job.h"

namespace posenc::kernels {

namespace cpu {
Outcome add(const AddJob& job);
void add_backward(const AddBackwardJob& job);
Outcome rotate(const RotateJob& job);
}  // namespace cpu

const Backend kCpuBackend = {"cpu", &cpu::add, &cpu::add_backward, &cpu::rotate};

}  // namespace posenc::kernels
