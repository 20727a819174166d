// What no outside call can cause: each kind of exception becomes its status and a message.
#include "c_api/status.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace posenc::status_test {
namespace {

using c_api::guarded;

TEST(Status, EachExceptionHasItsOwn) {
  EXPECT_EQ(guarded([] {}), POSENC_OK);
  EXPECT_EQ(guarded([] { raise("rope: dims must be even but is 7"); }), POSENC_INVALID);
  EXPECT_STREQ(posenc_error(), "rope: dims must be even but is 7");
  EXPECT_EQ(guarded([] { c_api::refuse(POSENC_DEVICE, "no such device"); }), POSENC_DEVICE);
  EXPECT_STREQ(posenc_error(), "no such device");
  EXPECT_EQ(guarded([] { throw std::bad_alloc(); }), POSENC_NO_MEMORY);
  EXPECT_STREQ(posenc_error(), "out of memory");
  EXPECT_EQ(guarded([] { throw std::logic_error("a bug"); }), POSENC_INTERNAL);
  EXPECT_STREQ(posenc_error(), "a bug");
  EXPECT_EQ(guarded([] { throw 7; }), POSENC_INTERNAL);
  EXPECT_STREQ(posenc_error(), "an unknown failure inside posenc");
}

}  // namespace
}  // namespace posenc::status_test
