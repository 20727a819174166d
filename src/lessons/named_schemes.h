#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/scheme.h"

namespace posenc::lessons {

/// A scheme named in content/schemes.json, and the length to prepare it for.
struct NamedScheme {
  Scheme scheme;
  std::int64_t length = 0;
};

/// Throws: Error for an unknown name.
NamedScheme named_scheme(std::string_view name);

}  // namespace posenc::lessons
