#include "cli/system/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <utility>

#include "cli/arrays/numbers.h"
#include "cli/system/failure.h"
#include "cli/system/signals.h"
#include "cli/system/streams.h"

namespace posenc::cli {
namespace {

constexpr int kNewFileMode = 0666;  // less the user's umask

std::string temporary_name(const std::string& name) {
  // names have at most 255 bytes, and ours are up to 40 longer than the target's
  std::random_device random;
  return fmt::format(".{}.posenc-{}-{:08x}", name.substr(0, 200), getpid(), random());
}

std::string path_of(const Descriptor& file) { return fmt::format("/proc/self/fd/{}", file.number()); }

bool link_open_file(const Descriptor& file, const Descriptor& directory, const std::string& name) {
  return linkat(AT_FDCWD, path_of(file).c_str(), directory.number(), name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

// An unnamed file can only get a name through /proc.
Descriptor open_unnamed(const std::string& directory) {
  if (access("/proc/self/fd", X_OK) != 0) return {};
  return Descriptor(open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kNewFileMode));
}

bool rename_without_replacing(const Descriptor& directory, const std::string& from, const std::string& to) {
  const int at = directory.number();
  if (renameat2(at, from.c_str(), at, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  return linkat(at, from.c_str(), at, to.c_str(), 0) == 0 && unlinkat(at, from.c_str(), 0) == 0;
}

void keep_permissions(const Descriptor& file, const OutputTarget& target) {
  if (!target.replaced) return;
  // Only root can change a file's owner; for everyone else it already is the owner. The mode comes second because a
  // change of owner clears some of its bits.
  const bool given = fchown(file.number(), target.replaced->user, target.replaced->group) == 0;
  if (!given && errno != EPERM) fail_with_errno(target.shown, errno);
  if (fchmod(file.number(), target.replaced->mode) != 0) fail_with_errno(target.shown, errno);
}

}  // namespace

OutputFile::OutputFile(OutputTarget target) : target_(std::move(target)) {
  directory_ = Descriptor(open(target_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory_.is_open() && errno == ENOENT) {
    throw Failure{kFilesFailed, fmt::format("{}: No such file or directory: there is no folder {}", target_.shown,
                                            target_.directory)};
  }
  if (!directory_.is_open()) fail_with_errno(target_.shown, errno);

  file_ = open_unnamed(target_.directory);
  if (file_.is_open()) return;
  temporary_ = temporary_name(target_.name);
  const int flags = O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC;
  file_ = Descriptor(openat(directory_.number(), temporary_.c_str(), flags, kNewFileMode));
  if (!file_.is_open()) {
    temporary_.clear();
    fail_with_errno(target_.shown, errno);
  }
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) unlinkat(directory_.number(), temporary_.c_str(), 0);
}

void OutputFile::reserve(std::int64_t bytes) {
  struct statvfs space {};
  if (fstatvfs(directory_.number(), &space) == 0 && space.f_blocks > 0) {
    const double available = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
    if (static_cast<double>(bytes) > available) {
      throw Failure{kFilesFailed, fmt::format("{}: needs {}, but only {} are free there", target_.shown,
                                              in_bytes(static_cast<double>(bytes)), in_bytes(available))};
    }
  }
  // Not posix_fallocate: if the file system cannot reserve space, it writes to every block instead.
  while (bytes > 0 && fallocate(file_.number(), 0, 0, bytes) != 0) {
    if (errno == EOPNOTSUPP || errno == ENOSYS) return;
    if (errno != EINTR) fail_with_errno(target_.shown, errno);
    stop_if_signalled();
  }
}

void OutputFile::write(std::string_view bytes) { write_all(file_.number(), bytes, target_.shown); }

void OutputFile::publish() {
  stop_if_signalled();
  keep_permissions(file_, target_);
  if (fsync(file_.number()) != 0) fail_with_errno(target_.shown, errno);
  if (temporary_.empty()) {
    publish_unnamed();
  } else {
    publish_named();
  }
  temporary_.clear();
  // some file systems do not support fsync on directories, and return EINVAL
  if (fsync(directory_.number()) != 0 && errno != EINVAL) fail_with_errno(target_.shown, errno);
}

void OutputFile::publish_unnamed() {
  const char* const name = target_.name.c_str();
  if (target_.force) {
    // linkat never replaces a file, rename does: the file has two names for a moment
    std::string temporary = temporary_name(target_.name);
    if (!link_open_file(file_, directory_, temporary)) fail_with_errno(target_.shown, errno);
    temporary_ = std::move(temporary);
    if (renameat(directory_.number(), temporary_.c_str(), directory_.number(), name) != 0) {
      fail_with_errno(target_.shown, errno);
    }
  } else if (!link_open_file(file_, directory_, target_.name)) {
    if (errno == EEXIST)
      refuse(fmt::format("{}: was created while posenc was running (use --force to overwrite)", target_.shown));
    fail_with_errno(target_.shown, errno);
  }
  if (close(file_.take()) != 0) fail_with_errno(target_.shown, errno);
}

void OutputFile::publish_named() {
  // network file systems report a failed write here at the latest
  if (close(file_.take()) != 0) fail_with_errno(target_.shown, errno);
  if (target_.force) {
    const int at = directory_.number();
    if (renameat(at, temporary_.c_str(), at, target_.name.c_str()) != 0) fail_with_errno(target_.shown, errno);
  } else if (!rename_without_replacing(directory_, temporary_, target_.name)) {
    if (errno == EEXIST)
      refuse(fmt::format("{}: was created while posenc was running (use --force to overwrite)", target_.shown));
    fail_with_errno(target_.shown, errno);
  }
}

}  // namespace posenc::cli
