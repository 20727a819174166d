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
  // Attention of f64, and gradients, of tensors on the host stay there where cuda is forced.
  if (name == kCpuAttention.name || name == "cuda") return kCpuAttention;
#endif
  raise(fmt::format("{}: the backend '{}' has no attention for tensors in host memory", verb, name));
}

}  // namespace posenc::attend
