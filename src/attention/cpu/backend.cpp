#include "attention/job.h"
#include "attention/reference/rows.h"

namespace posenc::attend {

const AttentionBackend kCpuAttention = {"cpu", &reference::forward, &reference::backward};

}  // namespace posenc::attend
