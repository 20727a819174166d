#pragma once

#include <atomic>
#include <cstdint>

#include "sanitized.h"

// malloc is counted too, with glibc and without a sanitizer, which has its own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define POSENC_COUNTS_MALLOC 1
#else
#define POSENC_COUNTS_MALLOC 0
#endif

namespace posenc::tests {

/// Every allocation of this program, by new and by malloc (memory_test.cpp).
inline std::atomic<std::int64_t> allocations = 0;

}  // namespace posenc::tests
