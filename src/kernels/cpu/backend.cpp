#include "kernels/job.h"

namespace posenc::kernels {

namespace cpu {
Outcome add(const AddJob& job);
void add_backward(const AddBackwardJob& job);
Outcome rotate(const RotateJob& job);
void bias(const BiasJob& job);
void bias_backward(const BiasBackwardJob& job);
}  // namespace cpu

const Backend kCpuBackend = {"cpu", &cpu::add, &cpu::add_backward, &cpu::rotate, &cpu::bias, &cpu::bias_backward};

}  // namespace posenc::kernels
