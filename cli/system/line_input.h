#pragma once

#include <optional>
#include <string>

namespace posenc::cli {

/// Standard input, line by line: a person at a terminal, a pipe or a file.
class LineInput {
 public:
  /// The next line without its newline, or nothing at the end of the input. Lines are truncated to 4096 bytes.
  /// Throws: Failure 128 + signal if one arrives while waiting, 3 if reading fails.
  std::optional<std::string> next();

 private:
  bool fill();

  std::string buffer_;
  bool ended_ = false;
};

}  // namespace posenc::cli
