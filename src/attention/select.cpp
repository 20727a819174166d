#include "attention/select.h"

#include <fmt/format.h>

#include "attention/reference/rows.h"
#include "posenc/error.h"

namespace posenc::attend {

const AttentionBackend kReferenceAttention = {"reference",         &kernels::kReferenceBackend, false,
                                              &reference::forward, &reference::backward,        nullptr};

const AttentionBackend& selected_attention(std::string_view verb) {
  const std::string_view name = kernels::selected_backend().name;
  // The modules of the web page have no attention of their own.
  if (name == kReferenceAttention.name || name == "wasm") return kReferenceAttention;
#if POSENC_CPU_BACKEND
  // With cuda forced, attention of f64 and gradients for tensors on the host still run on the host.
  if (name == kCpuAttention.name || name == "cuda") return kCpuAttention;
#endif
  raise(fmt::format("{}: the backend '{}' has no attention for tensors in host memory", verb, name));
}

}  // namespace posenc::attend
