#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/scheme.h"

namespace posenc::lessons {

/// A scheme that content/schemes.json gives a name, with the length it is prepared for.
struct NamedScheme {
  Scheme scheme;
  std::int64_t length = 0;
};

/// Throws: Error where there is none of that name.
NamedScheme named_scheme(std::string_view name);

}  // namespace posenc::lessons
