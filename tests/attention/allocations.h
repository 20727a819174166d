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

/// Every allocation of this program, by new and by malloc (memory_test.cpp), and those of threads that count theirs: a GPU's
/// driver has threads of its own, which allocate when they like.
inline std::atomic<std::int64_t> all_allocations = 0, allocations = 0;
inline thread_local bool is_counting_thread = false;
inline void count_allocation() {
  ++all_allocations;
  if (is_counting_thread) ++allocations;
}
/// While it lives, this thread counts its allocations.
struct CountOfThread {
  CountOfThread() { is_counting_thread = true; }
  ~CountOfThread() { is_counting_thread = false; }
  CountOfThread(const CountOfThread&) = delete;
  CountOfThread& operator=(const CountOfThread&) = delete;
};

}  // namespace posenc::tests
