#pragma once

#include <optional>
#include <string>

namespace posenc::cli {

/// Standard input, line by line: a person at a terminal, a pipe or a file.
class LineInput {
 public:
  /// The next line without its end, or nothing where the input has ended. Of a line past 4096 bytes the rest is
  /// dropped. Throws: Failure 128 + signal where one comes while waiting, 3 where reading fails.
  std::optional<std::string> next();

 private:
  bool fill();

  std::string buffer_;
  bool ended_ = false;
};

}  // namespace posenc::cli
