#pragma once

#include <string>
#include <string_view>

namespace posenc::cli {

/// What the program's exit status says. A signal adds its number to 128.
enum ExitCode : int {
  kDone = 0,
  kNo = 1,           // the answer is no
  kBadInput = 2,     // usage, or input that is wrong
  kFilesFailed = 3,  // input or output failed
  kOutOfMemory = 4,
  kReaderGone = 141,  // what a shell shows for a program that SIGPIPE ended
};

/// Why the program ends early: an exit status and one line for stderr. No line where the user knows already
/// (a signal, a pipe that nobody reads).
struct Failure {
  int code = kBadInput;
  std::string message;
};

/// Ends with exit status 2.
[[noreturn]] void refuse(const std::string& message);
/// Ends with exit status 3: "WHAT: No space left on device".
[[noreturn]] void fail_with_errno(std::string_view what, int error);

/// Text from outside may hold anything; in a message, control characters become \n, \t or \xNN.
std::string one_line(std::string_view text);

}  // namespace posenc::cli
