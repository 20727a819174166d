#include "attention/select.h"

#include <fmt/format.h>

#include "attention/reference/rows.h"
#include "posenc/error.h"

namespace posenc::attend {

const AttentionBackend kReferenceAttention = {"reference",         &kernels::kReferenceBackend, false,
                                              &reference::forward, &reference::backward,        nullptr};

const AttentionBackend& selected_attention(std::string_view verb) {
  const std::string_view name = kernels::selected_backend().name;
  if (name == kReferenceAttention.name) return kReferenceAttention;
#if POSENC_CPU_BACKEND
  // Attention on a GPU is for tensors that are there: those of the host stay on the host.
  if (name == kCpuAttention.name || name == "cuda") return kCpuAttention;
#endif
  raise(fmt::format("{}: the backend '{}' has no attention for tensors on the host", verb, name));
}

}  // namespace posenc::attend
