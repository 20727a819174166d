#pragma once

#include "diagnosis/candidates.h"

namespace posenc::diagnosis {

/// The rotation that explains the samples, as far as any does: sure, likely, unknown frequencies or none. Remarks are
/// not made here.
Diagnosis explain_by_rotation(const Samples& samples);

/// The same where tokens are neither consecutive nor where they were said to be (padding, packed sequences): a scheme
/// that explains one half of the tokens, and the position of each token by it. None where that explains no more.
std::optional<Diagnosis> explain_by_other_positions(const Samples& samples);

}  // namespace posenc::diagnosis
