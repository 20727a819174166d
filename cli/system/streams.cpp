#include "cli/system/streams.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cli/system/failure.h"
#include "cli/system/signals.h"

namespace posenc::cli {
namespace {

constexpr std::string_view kStandardOutput = "standard output";

void wait_until_writable(int descriptor) {
  pollfd waiting{descriptor, POLLOUT, 0};
  poll(&waiting, 1, -1);
}

}  // namespace

void hold_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) != -1) continue;
    // open() takes the lowest free number, which is this one; the wrong direction makes every use fail
    const int direction = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", direction) < 0) throw Failure{kFilesFailed, ""};
  }
}

void write_all(int descriptor, std::string_view bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(written);
      // a signal during a write shows only as a short write
      if (!bytes.empty()) stop_if_signalled();
      continue;
    }
    const int error = errno;
    if (error == EINTR) {
      stop_if_signalled();
    } else if (error == EAGAIN) {
      wait_until_writable(descriptor);
      stop_if_signalled();
    } else if (error == EPIPE) {
      throw Failure{kReaderGone, ""};
    } else {
      fail_with_errno(name, error);
    }
  }
}

void print(std::string_view text) { write_all(STDOUT_FILENO, text, kStandardOutput); }

void finish_output() {
  if (close(STDOUT_FILENO) != 0 && errno != EINTR) fail_with_errno(kStandardOutput, errno);
}

void tell(std::string_view text) noexcept {
  constexpr std::string_view kName = "posenc: ";
  constexpr std::string_view kEnd = "\n";
  const auto part = [](std::string_view bytes) { return iovec{const_cast<char*>(bytes.data()), bytes.size()}; };
  // one call, so that lines of several programs do not mix; if stderr is gone, there is no one to tell
  const std::array<iovec, 3> parts = {part(kName), part(text), part(kEnd)};
  [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, parts.data(), static_cast<int>(parts.size()));
}

}  // namespace posenc::cli
