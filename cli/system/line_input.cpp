#include "cli/system/line_input.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cli/system/failure.h"
#include "cli/system/signals.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr int kMillisecondsBetweenLooks = 250;

}  // namespace

bool LineInput::fill() {
  std::array<char, kLongestLine> bytes{};
  while (true) {
    // a signal just before a blocking read would go unnoticed, so it waits in short intervals
    pollfd waiting{STDIN_FILENO, POLLIN, 0};
    while (poll(&waiting, 1, kMillisecondsBetweenLooks) <= 0) stop_if_signalled();
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count > 0) {
      buffer_.append(bytes.data(), count);
      return true;
    }
    if (count == 0) return false;
    if (errno == EIO) return false;  // the terminal is gone
    if (errno != EINTR && errno != EAGAIN) fail_with_errno("standard input", errno);
    stop_if_signalled();
  }
}

std::optional<std::string> LineInput::next() {
  std::string line;
  while (true) {
    const std::size_t end = buffer_.find('\n');
    line.append(buffer_, 0, end);
    if (line.size() > kLongestLine) line.resize(kLongestLine);
    if (end != std::string::npos) {
      buffer_.erase(0, end + 1);
      break;
    }
    buffer_.clear();
    if (ended_ || !fill()) {
      // the last line may lack a newline
      ended_ = true;
      if (line.empty()) return std::nullopt;
      break;
    }
  }
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace posenc::cli
