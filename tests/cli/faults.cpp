// Preloaded into a program, makes one system call fail, and records the calls that matter for files.
//
//   POSENC_FAULT=write:3:ENOSPC     the third write to a file fails; with "short" instead, all write half
//   POSENC_NO_TMPFILE=1             opening with O_TMPFILE is not supported
//   POSENC_FAULT=new:100:ENOMEM     the hundredth operator new within main throws
//   POSENC_CALLS=FILE               appends one line for each call: its name, and for fsync what it is

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>

namespace {

// The first thing the program does is to see to its signals. What is allocated before, nobody can answer for.
std::atomic<bool> main_has_begun = false;

struct Fault {
  char call[16] = "";
  long when = 0;
  int error = 0;
  bool is_short = false;
};

int number_of(const char* name) {
  struct Named {
    const char* name;
    int number;
  };
  for (const Named known :
       {Named{"ENOSPC", ENOSPC}, Named{"EIO", EIO}, Named{"EINTR", EINTR}, Named{"EDQUOT", EDQUOT},
        Named{"EOPNOTSUPP", EOPNOTSUPP}, Named{"EINVAL", EINVAL}, Named{"ENOMEM", ENOMEM}}) {
    if (std::strcmp(name, known.name) == 0) return known.number;
  }
  return 0;
}

const Fault& wanted() {
  static const Fault fault = [] {
    Fault parsed;
    char error[16] = "";
    const char* const text = std::getenv("POSENC_FAULT");
    if (text == nullptr || std::sscanf(text, "%15[^:]:%ld:%15s", parsed.call, &parsed.when, error) != 3)
      return Fault{};
    parsed.is_short = std::strcmp(error, "short") == 0;
    parsed.error = number_of(error);
    return parsed;
  }();
  return fault;
}

// Whether this call, which is of this kind, is the one to fail; errno is set then.
bool fails(const char* call) {
  if (std::strcmp(call, wanted().call) != 0) return false;
  static std::atomic<long> count = 0;
  if (++count != wanted().when || wanted().error == 0) return false;
  errno = wanted().error;
  return true;
}

// Straight to the kernel's write: ours is being counted.
template <class Function> Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
using Write = ssize_t (*)(int, const void*, size_t);

void note(const char* call) {
  static const int log = [] {
    const char* const path = std::getenv("POSENC_CALLS");
    return path == nullptr ? -1 : real<int (*)(const char*, int, ...)>("open")(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  }();
  if (log < 0) return;
  static const auto put = real<Write>("write");
  if (put(log, call, std::strlen(call)) < 0 || put(log, "\n", 1) < 0) std::abort();
}

bool is_file(int descriptor) {
  struct stat status {};
  return descriptor > STDERR_FILENO && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

void* operator new(std::size_t size) {
  void* const memory = main_has_begun && fails("new") ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  const bool is_unnamed = (flags & O_TMPFILE) == O_TMPFILE;
  if (is_unnamed) note("tmpfile");
  if (is_unnamed && std::getenv("POSENC_NO_TMPFILE") != nullptr) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (is_unnamed && fails("tmpfile")) return -1;
  return real<int (*)(const char*, int, ...)>("open")(path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
  std::va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  note("openat");
  if (fails("openat")) return -1;
  return real<int (*)(int, const char*, int, ...)>("openat")(directory, path, flags, mode);
}

ssize_t write(int descriptor, const void* bytes, size_t count) {
  static const auto put = real<Write>("write");
  if (!is_file(descriptor)) return put(descriptor, bytes, count);
  note("write");
  if (fails("write")) return -1;
  if (wanted().is_short && std::strcmp(wanted().call, "write") == 0 && count > 1) count /= 2;
  return put(descriptor, bytes, count);
}

int fsync(int descriptor) {
  const char* const what = is_file(descriptor) ? "fsync file" : "fsync directory";
  note(what);
  if (fails("fsync")) return -1;
  return real<int (*)(int)>("fsync")(descriptor);
}

int close(int descriptor) {
  if (is_file(descriptor) && fails("close")) {
    real<int (*)(int)>("close")(descriptor);
    errno = wanted().error;
    return -1;
  }
  return real<int (*)(int)>("close")(descriptor);
}

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
  note("fallocate");
  if (fails("fallocate")) return -1;
  return real<int (*)(int, int, off_t, off_t)>("fallocate")(descriptor, mode, offset, length);
}

int linkat(int from, const char* old_name, int to, const char* name, int flags) {
  note("linkat");
  if (fails("linkat")) return -1;
  return real<int (*)(int, const char*, int, const char*, int)>("linkat")(from, old_name, to, name, flags);
}

int renameat(int from, const char* old_name, int to, const char* name) {
  note("renameat");
  if (fails("renameat")) return -1;
  return real<int (*)(int, const char*, int, const char*)>("renameat")(from, old_name, to, name);
}

int renameat2(int from, const char* old_name, int to, const char* name, unsigned flags) {
  note("renameat2");
  if (fails("renameat2")) return -1;
  return real<int (*)(int, const char*, int, const char*, unsigned)>("renameat2")(from, old_name, to, name, flags);
}

sighandler_t signal(int number, sighandler_t handler) noexcept {
  main_has_begun = true;
  return real<sighandler_t (*)(int, sighandler_t)>("signal")(number, handler);
}

ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
  if (fails("pread")) return -1;
  if (wanted().is_short && std::strcmp(wanted().call, "pread") == 0 && count > 1) count /= 2;
  return real<ssize_t (*)(int, void*, size_t, off_t)>("pread")(descriptor, bytes, count, offset);
}

}  // extern "C"
