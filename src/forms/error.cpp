#include "posenc/error.h"

namespace posenc {
namespace {
#if defined(__cpp_exceptions)
thread_local std::string message_of_last_error;
#else
std::string message_of_last_error;  // WebAssembly without threads
#endif
}  // namespace

void raise(const std::string& message) {
  message_of_last_error = message;
#if defined(__cpp_exceptions)
  throw Error(message);
#else
  __builtin_trap();
#endif
}

const std::string& last_error() noexcept { return message_of_last_error; }

}  // namespace posenc
