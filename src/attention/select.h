#pragma once

#include "attention/job.h"

namespace posenc::attend {

/// The attention of the backend in use for tensors on the host. Throws: Error that begins with the verb, if it has
/// none.
const AttentionBackend& selected_attention(std::string_view verb);

}  // namespace posenc::attend
