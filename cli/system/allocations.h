#pragma once

#include <cstdint>

namespace posenc::cli {

/// How often this program has allocated by `new` so far, on any thread.
std::int64_t allocations() noexcept;

}  // namespace posenc::cli
