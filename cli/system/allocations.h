#pragma once

#include <cstdint>
#include <optional>

namespace posenc::cli {

/// How often this program has allocated by `new` so far, on any thread. With sanitizers nothing, since they have
/// operators of their own.
std::optional<std::int64_t> allocations() noexcept;

}  // namespace posenc::cli
