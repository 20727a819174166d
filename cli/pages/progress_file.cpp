#include "cli/pages/progress_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "cli/system/failure.h"
#include "cli/system/input_file.h"
#include "cli/system/output_file.h"
#include "cli/system/signals.h"
#include "cli/system/streams.h"
#include "posenc/error.h"

namespace posenc::cli {
namespace {

constexpr std::int64_t kLargestFile = 32'000'000;

std::string data_folder() {
  // the XDG specification says to ignore a path that is not absolute
  if (const char* const given = std::getenv("XDG_DATA_HOME"); given != nullptr && *given == '/') return given;
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::string(home) + "/.local/share";
  }
  refuse("practice: cannot save progress: neither XDG_DATA_HOME nor HOME is set (use --no-progress)");
}

// mkdir -p, private to the user as the specification requires.
void make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) fail_with_errno(part, errno);
    if (slash == std::string::npos) return;
  }
}

std::string keep_aside(const std::string& path) {
  char stamp[32] = "";
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  if (gmtime_r(&now, &parts) != nullptr) std::strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &parts);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    std::string aside = fmt::format("{}.damaged-{}{}", path, stamp, attempt == 0 ? "" : fmt::format("-{}", attempt));
    // link and unlink, so that an older file of that name is never replaced
    if (link(path.c_str(), aside.c_str()) == 0) {
      if (unlink(path.c_str()) != 0) fail_with_errno(path, errno);
      return aside;
    }
    if (errno != EEXIST) fail_with_errno(aside, errno);
  }
  fail_with_errno(path, EEXIST);
}

// Nothing if there is no file; a text that is too long counts as damaged.
std::optional<std::string> text_of(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) {
    if (errno == ENOENT) return std::nullopt;
    fail_with_errno(path, errno);
  }
  struct stat status {};
  if (fstat(file.number(), &status) != 0) fail_with_errno(path, errno);
  if (!S_ISREG(status.st_mode)) refuse(fmt::format("{}: not a regular file (use --no-progress to ignore it)", path));
  return read_up_to(file, std::min<std::int64_t>(status.st_size, kLargestFile + 1), path);
}

}  // namespace

ProgressFile::ProgressFile() : folder_(data_folder() + "/posenc") { path_ = folder_ + "/practice.json"; }

// A separate lock file: the other one is replaced, and a lock on a deleted file protects nothing.
Descriptor ProgressFile::locked() {
  make_folders(folder_);
  const std::string name = folder_ + "/practice.lock";
  Descriptor lock(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.is_open()) fail_with_errno(name, errno);
  while (flock(lock.number(), LOCK_EX) != 0) {
    if (errno != EINTR) fail_with_errno(name, errno);
    stop_if_signalled();
  }
  return lock;
}

PracticeProgress ProgressFile::read() {
  const std::optional<std::string> text = text_of(path_);
  if (!text) return {};
  if (is_newer_progress(*text)) {
    refuse(fmt::format("{}: was written by a newer posenc (use --no-progress to ignore it)", path_));
  }
  std::string reason = "is too large";
  if (static_cast<std::int64_t>(text->size()) <= kLargestFile) {
    try {
      return progress_from_json(*text);
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  const std::string aside = keep_aside(path_);
  tell(one_line(fmt::format("{} is damaged ({}); kept as {}, starting afresh", path_, reason, aside)));
  return {};
}

PracticeProgress ProgressFile::load() {
  const Descriptor lock = locked();
  return read();
}

PracticeProgress ProgressFile::add(const Review& review) {
  const Descriptor lock = locked();
  PracticeProgress progress = read();
  record(progress, review);
  OutputFile file(output_target(path_, true));
  file.write(to_json(progress));
  file.publish();
  return progress;
}

}  // namespace posenc::cli
