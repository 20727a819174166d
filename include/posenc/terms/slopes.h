#pragma once

#include <vector>

namespace posenc {

/// −slopes[h] · |δ|, in double (ALiBi). One axis.
struct Slopes {
  std::vector<double> slopes;  // one for each head
};

}  // namespace posenc
