#pragma once

#if __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#error "posenc needs C++20: compile with -std=c++20 or later"
#endif

#include <stdexcept>
#include <string>

namespace posenc {

/// Thrown for every misuse of the library. The message names the operation, the value and the rule:
/// "sinusoidal: width must be even but is 7".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The only function that throws. On platforms without exceptions (WebAssembly), it stores the message for
/// `last_error()` and traps.
[[noreturn]] void raise(const std::string& message);

/// The message of the last `raise` in this thread, or "".
const std::string& last_error() noexcept;

}  // namespace posenc
