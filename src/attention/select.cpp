#include "attention/select.h"

#include "attention/reference/rows.h"

namespace posenc::attend {

const AttentionBackend kReferenceAttention = {"reference", false, &reference::forward, &reference::backward};

const AttentionBackend& selected_attention() {
#if POSENC_CPU_BACKEND
  // The GPU's attention is for tensors of the GPU: those of the host stay there.
  if (kernels::selected_backend().name != kReferenceAttention.name) return kCpuAttention;
#endif
  return kReferenceAttention;
}

}  // namespace posenc::attend
