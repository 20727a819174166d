#pragma once

#include <cstdint>
#include <optional>

namespace posenc::bench {

/// How often this program has called `new` so far, on any thread. Unset with sanitizers, which have their own
/// operators.
std::optional<std::int64_t> allocations() noexcept;

}  // namespace posenc::bench
