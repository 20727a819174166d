#include "cli/system/standard_input.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "cli/system/failure.h"
#include "cli/system/signals.h"
#include "cli/system/streams.h"

namespace posenc::cli {

Descriptor standard_input_as_file() {
  static bool was_read = false;
  if (was_read) refuse("standard input can be read only once, but two arguments are '-'");
  was_read = true;
  if (isatty(STDIN_FILENO) == 1) refuse("-: standard input is a terminal; send a file or a pipe there");
  Descriptor file(memfd_create("standard input", MFD_CLOEXEC));
  if (!file.is_open()) fail_with_errno("standard input", errno);
  std::array<char, 1 << 16> piece{};
  while (true) {
    const ssize_t count = read(STDIN_FILENO, piece.data(), piece.size());
    if (count == 0) return file;
    if (count > 0) {
      write_all(file.number(), std::string_view(piece.data(), static_cast<std::size_t>(count)), "standard input");
    } else if (errno == EINTR) {
      stop_if_signalled();
    } else {
      fail_with_errno("standard input", errno);
    }
  }
}

}  // namespace posenc::cli
