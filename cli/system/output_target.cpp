#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <tuple>
#include <utility>

#include "cli/system/failure.h"
#include "cli/system/output_file.h"

namespace posenc::cli {
namespace {

constexpr int kMostLinks = 40;  // the kernel's limit

std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// The path that the last component resolves to, even if a link points to nothing yet.
std::string follow_links(std::string path, const std::string& shown) {
  for (int links = 0; links < kMostLinks; ++links) {
    std::array<char, PATH_MAX> text{};
    const ssize_t length = readlink(path.c_str(), text.data(), text.size());
    if (length < 0) return path;  // no link: what happens next says whether it is good
    const std::string next(text.data(), length);
    path = next.starts_with('/') ? next : fmt::format("{}/{}", split_path(path).first, next);
  }
  fail_with_errno(shown, ELOOP);
}

}  // namespace

OutputTarget output_target(const std::string& path, bool force) {
  OutputTarget target;
  target.shown = path;
  target.force = force;

  struct stat status {};
  if (stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) refuse(fmt::format("{} is a directory", path));
    if (!S_ISREG(status.st_mode)) {
      refuse(fmt::format("{} is not a regular file (write there with -o - > {})", path, path));
    }
    target.replaced = {status.st_mode & 07777U, status.st_uid, status.st_gid};
  } else if (errno != ENOENT) {
    fail_with_errno(path, errno);
  }
  // a dangling link counts as well
  if (!force && lstat(path.c_str(), &status) == 0)
    refuse(fmt::format("{}: already exists (use --force to overwrite)", path));

  std::tie(target.directory, target.name) = split_path(follow_links(path, path));
  if (target.name.empty() || target.name == "." || target.name == "..") {
    refuse(fmt::format("'{}' is not the name of a file", path));
  }
  return target;
}

}  // namespace posenc::cli
