#pragma once

#include "diagnosis/candidates.h"

namespace posenc::diagnosis {

/// The rotation that explains the samples, as far as any does: sure, likely, unknown frequencies or none. Without
/// remarks.
Diagnosis explain_by_rotation(const Samples& samples);

/// The same if tokens are neither consecutive nor at the given positions (padding, packed sequences): a scheme that
/// explains one half of the tokens, and the position of each token according to it. None if that explains no more.
/// Has a remark on the pattern of these positions, if it is a known one.
std::optional<Diagnosis> explain_by_other_positions(const Samples& samples);

/// What the positions found for each sequence and token ([sequences, tokens]) have in common: "" if that is unknown.
/// Positions rounded to bf16 become a kind of angles instead of a list.
std::string pattern_of(const Samples& samples, Convention& found);

}  // namespace posenc::diagnosis
