#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/random_values.h"
#include "message_of.h"
#include "numerics/narrow.h"
#include "posenc/backend.h"
#include "posenc/error.h"

// What tests on a GPU share: the one line that says why a test did not run.
#define SKIP_WITHOUT_CUDA()                                             \
  if (const std::string reason = why_absent("cuda"); !reason.empty()) { \
    GTEST_SKIP() << "cuda cannot run here: " << reason;                 \
  }

namespace posenc::tests {

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
