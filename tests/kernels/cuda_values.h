#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "message_of.h"
#include "numerics/narrow.h"
#include "posenc/backend.h"
#include "posenc/error.h"

// What the tests of caches on a GPU have in common.
#ifndef SKIP_WITHOUT_CUDA
#define SKIP_WITHOUT_CUDA()                                             \
  if (const std::string reason = why_absent("cuda"); !reason.empty()) { \
    GTEST_SKIP() << "cuda cannot run here: " << reason;                 \
  }
#endif

namespace posenc::tests {

/// In [−2, 2).
template <class T> std::vector<T> random_values(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = numerics::narrow<T>(static_cast<double>(random() >> 11) * 0x1p-51 - 2.0);
  return values;
}

template <class T>
void expect_same_bytes(const std::vector<T>& got, const std::vector<T>& want, std::string_view what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = want.size(); i-- > 0;) {
    if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0) ++wrong, first = i;
  }
  EXPECT_EQ(wrong, 0u) << what << ": first at " << first << " of " << want.size() << ", got "
                       << numerics::widen(got[first]) << ", expected " << numerics::widen(want[first]);
}

}  // namespace posenc::tests
