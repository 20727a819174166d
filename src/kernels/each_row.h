#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/job.h"
#if POSENC_CPU_BACKEND
#include "kernels/cpu/parallel.h"
#endif

namespace posenc::kernels {

/// Calls body(i) for every row, on the threads of the call.
template <class Body> void each_row(std::int64_t rows, [[maybe_unused]] std::int64_t bytes, const Body& body) {
  const auto some = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  };
#if POSENC_CPU_BACKEND
  constexpr std::int64_t kBytes = 1 << 16;  // fewer are not worth a thread
  if (selected_backend().name == "cpu") {
    cpu::parallel_for(rows, std::max<std::int64_t>(kBytes / std::max<std::int64_t>(bytes, 1), 1), some);
    return;
  }
#endif
  some(0, rows);
}

}  // namespace posenc::kernels
