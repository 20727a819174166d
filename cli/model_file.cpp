#include "cli/model_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <span>
#include <string_view>

#include "cli/descriptor.h"
#include "cli/failure.h"
#include "posenc/error.h"

namespace posenc::cli {
namespace {

bool is_directory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// A file as memory, read as far as it is looked at: a .gguf has its metadata in front and gigabytes behind.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file.is_open()) fail_with_errno(path, errno);
    struct stat status {};
    if (fstat(file.number(), &status) != 0) fail_with_errno(path, errno);
    if (S_ISDIR(status.st_mode)) refuse(fmt::format("{}: is a directory", path));
    if (!S_ISREG(status.st_mode)) {
      refuse(fmt::format("{}: is not a regular file (a pipe or a device cannot be read here)", path));
    }
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ == 0) return;
    data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number(), 0);
    if (data_ == MAP_FAILED) fail_with_errno(path, errno);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (data_ != nullptr) munmap(data_, size_);
  }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

Model model_from(const std::string& path) {
  const std::string name = is_directory(path) ? path + (path.ends_with('/') ? "" : "/") + "config.json" : path;
  const MappedFile file(name);
  try {
    if (file.text().starts_with("GGUF") || name.ends_with(".gguf")) {
      return read_model(read_gguf_head(file.bytes()), file.bytes());
    }
    return read_model(file.text());
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace posenc::cli
