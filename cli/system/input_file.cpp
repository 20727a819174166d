#include "cli/system/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "cli/system/failure.h"
#include "cli/system/signals.h"
#include "cli/system/streams.h"

namespace posenc::cli {
namespace {

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
      write_all(file.number(), std::string_view(piece.data(), count), "standard input");
    } else if (errno == EINTR) {
      stop_if_signalled();
    } else {
      fail_with_errno("standard input", errno);
    }
  }
}

}  // namespace

Descriptor open_regular(const std::string& path, std::int64_t& size) {
  // without blocking: a FIFO without a writer would block, and is rejected anyway
  Descriptor file =
      path == "-" ? standard_input_as_file() : Descriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) fail_with_errno(path, errno);
  struct stat status {};
  if (fstat(file.number(), &status) != 0) fail_with_errno(path, errno);
  if (S_ISDIR(status.st_mode)) refuse(fmt::format("{} is a directory", path));
  if (!S_ISREG(status.st_mode)) {
    refuse(fmt::format("{} is not a regular file; pipes and devices cannot be read here", path));
  }
  size = status.st_size;
  return file;
}

std::string read_up_to(const Descriptor& file, std::int64_t count, const std::string& path) {
  std::string bytes(count, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(file.number(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_with_errno(path, errno);
    if (got == 0) break;
    done += got;
  }
  bytes.resize(done);
  return bytes;
}

bool is_there(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

}  // namespace posenc::cli
