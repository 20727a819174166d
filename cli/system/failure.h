#pragma once

#include <string>
#include <string_view>

namespace posenc::cli {

/// The program's exit statuses. A signal adds its number to 128.
enum ExitCode : int {
  kDone = 0,
  kNo = 1,           // the answer is no
  kBadInput = 2,     // usage, or invalid input
  kFilesFailed = 3,  // input or output failed
  kOutOfMemory = 4,
  kReaderGone = 141,  // what a shell reports for a program ended by SIGPIPE
};

/// Why the program ends early: an exit status and one line for stderr. No line if the user knows already (a signal, a
/// closed pipe).
struct Failure {
  int code = kBadInput;
  std::string message;
};

/// Ends with exit status 2.
[[noreturn]] void refuse(const std::string& message);
/// Ends with exit status 3: "WHAT: No space left on device".
[[noreturn]] void fail_with_errno(std::string_view what, int error);

/// Text from outside may contain anything; in a message, control characters become \n, \t or \xNN.
std::string one_line(std::string_view text);

}  // namespace posenc::cli
