#pragma once

#include "diagnosis/candidates.h"

namespace posenc::diagnosis {

/// The rotation that explains the samples, as far as any does: sure, likely, unknown frequencies or none. Without
/// remarks.
Diagnosis explain_by_rotation(const Samples& samples);

/// The same if tokens are neither consecutive nor at the given positions (padding, packed sequences): a scheme that
/// explains one half of the tokens, and the position of each token according to it. None if that explains no more.
std::optional<Diagnosis> explain_by_other_positions(const Samples& samples);

}  // namespace posenc::diagnosis
