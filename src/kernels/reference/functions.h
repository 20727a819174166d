#pragma once

#include "kernels/job.h"

namespace posenc::kernels::reference {

Outcome add(const AddJob& job);
void add_backward(const AddBackwardJob& job);
Outcome rotate(const RotateJob& job);
void bias(const BiasJob& job);
void bias_backward(const BiasBackwardJob& job);

}  // namespace posenc::kernels::reference
