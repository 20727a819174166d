#pragma once

#include <optional>

#include "diagnosis/samples.h"

namespace posenc::diagnosis {

/// The sinusoids that were added, if any explain the tensors.
std::optional<Convention> added_waves(const Samples& samples);

}  // namespace posenc::diagnosis
