#pragma once

#include "attention/job.h"

namespace posenc::attend {

/// That of the backend in use for tensors on the host. Throws: Error that begins with the verb, where it has none.
const AttentionBackend& selected_attention(std::string_view verb);

}  // namespace posenc::attend
