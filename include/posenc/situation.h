#pragma once

#include <cstdint>

#include "posenc/forms.h"
#include "posenc/tensor.h"

namespace posenc {

/// What a scheme may need to know beyond its own fields before it can become a form.
struct Situation {
  std::int64_t length = 0;               ///< tokens in the sequence now; 0: not said
  Numerics numerics = Numerics::kExact;  ///< which angle is meant
  Precision precision = {};              ///< the types of a rotation
  ConstTensorView weights = {};          ///< the caller's learned table, where the scheme has one
  ConstTensorView key_weights = {};      ///< a second one, of what keys meet (DeBERTa)
};

}  // namespace posenc
