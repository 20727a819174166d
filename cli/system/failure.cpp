#include "cli/system/failure.h"

#include <fmt/format.h>

#include <system_error>

namespace posenc::cli {

void refuse(const std::string& message) { throw Failure{kBadInput, message}; }

void fail_with_errno(std::string_view what, int error) {
  throw Failure{kFilesFailed, fmt::format("{}: {}", what, std::generic_category().message(error))};
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else if (code < 0x20 || code == 0x7f) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned>(code));
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace posenc::cli
