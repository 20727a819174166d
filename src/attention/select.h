#pragma once

#include "attention/job.h"

namespace posenc::attend {

/// That of the backend in use.
const AttentionBackend& selected_attention();

}  // namespace posenc::attend
