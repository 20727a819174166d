#pragma once

#include <vector>

#include "posenc/terms/numbered.h"

namespace posenc {

/// −slopes[h] · |δ|, in double (ALiBi). One axis.
struct Slopes {
  std::vector<double> slopes;  // one for each head
};
template <> struct NumberedTerm<0> { using Type = Slopes; };

}  // namespace posenc
