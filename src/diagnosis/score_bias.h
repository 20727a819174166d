#pragma once

#include <optional>

#include "posenc/diagnosis.h"

namespace posenc::diagnosis {

/// The bias that was added to scores [..., heads, queries, keys]: ALiBi or T5, sure or likely; or, without a best
/// one, that the change depends only on the distance. Masked scores are ignored. Nothing if the tensors are not
/// scores.
std::optional<Diagnosis> explain_by_bias(ConstTensorView before, ConstTensorView after,
                                         const DiagnosisOptions& options);

/// Whether a tensor has masked elements and no other non-finite ones.
bool has_masks(ConstTensorView x);

}  // namespace posenc::diagnosis
