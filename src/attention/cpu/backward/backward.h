#pragma once

#include "attention/job.h"

namespace posenc::attend::cpu {

void backward(BackwardJob& job);

}  // namespace posenc::attend::cpu
