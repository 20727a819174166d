#pragma once

#include <cstdint>
#include <functional>

namespace posenc::kernels::cpu {

int all_cores() noexcept;

/// Calls body(begin, end) on pieces of [0, count), on as many threads as posenc::threads() says. `grain` is the
/// least number of items worth a piece. Items must not depend on each other: then neither do results on threads.
void parallel_for(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body);

}  // namespace posenc::kernels::cpu
