#include "cli/input_array.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "cli/failure.h"
#include "cli/signals.h"
#include "posenc/error.h"

namespace posenc::cli {
namespace {

static_assert(std::endian::native == std::endian::little, ".npy files are read as the machine's own bytes");

// Opened without waiting: a FIFO that nobody writes to would block, and is refused anyway.
Descriptor open_regular(const std::string& path, std::int64_t& size) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) fail_with_errno(path, errno);
  struct stat status {};
  if (fstat(file.number(), &status) != 0) fail_with_errno(path, errno);
  if (S_ISDIR(status.st_mode)) refuse(fmt::format("{}: is a directory", path));
  if (!S_ISREG(status.st_mode)) {
    refuse(fmt::format("{}: is not a regular file (a pipe or a device cannot be read here)", path));
  }
  size = status.st_size;
  return file;
}

template <class Read> auto with_file_name(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", path, error.what()));
  }
}

bool is_floating(DataType type) { return type != DataType::kI64; }

}  // namespace

InputArray::InputArray(const std::string& path, const NpyOptions& options) : path_(path) {
  std::int64_t size = 0;
  file_ = open_regular(path, size);
  std::vector<std::byte> front(static_cast<std::size_t>(std::min(size, kNpyHeadBytes)));
  read_file(0, front);
  head_ = with_file_name(path, [&] { return read_npy_head(front, size, options); });

  // integers may be stored narrower than they are given out
  const bool in_order = !head_.fortran_order && !head_.big_endian && is_floating(head_.type);
  if (in_order) return;
  std::vector<std::byte> whole(static_cast<std::size_t>(size));
  read_file(0, whole);
  loaded_ = with_file_name(path, [&] { return read_npy(whole, options).bytes; });
  is_loaded_ = true;
}

bool InputArray::is_same_file(const std::string& path) const {
  struct stat ours {};
  struct stat other {};
  return fstat(file_.number(), &ours) == 0 && stat(path.c_str(), &other) == 0 && ours.st_dev == other.st_dev &&
         ours.st_ino == other.st_ino;
}

void InputArray::read(std::int64_t first, std::span<std::byte> out) const {
  const std::int64_t begin = first * size_of(head_.type);
  if (!is_loaded_) {
    read_file(head_.data_offset + begin, out);
  } else if (!out.empty()) {
    std::memcpy(out.data(), loaded_.data() + begin, out.size());
  }
}

void InputArray::read_file(std::int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = pread(file_.number(), out.data(), out.size(), offset);
    if (count > 0) {
      offset += count;
      out = out.subspan(static_cast<std::size_t>(count));
    } else if (count == 0) {
      refuse(fmt::format("{}: byte {}: the file ends here; it became shorter while being read", path_, offset));
    } else if (errno == EINTR) {
      stop_if_signalled();
    } else {
      fail_with_errno(path_, errno);
    }
  }
}

NpyArray load_array(const InputArray& input) {
  NpyArray array;
  array.type = input.type();
  array.shape = input.shape();
  array.bytes.resize(static_cast<std::size_t>(count_of(input.shape()) * size_of(input.type())));
  input.read(0, array.bytes);
  return array;
}

}  // namespace posenc::cli
