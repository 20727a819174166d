// What a C++ program expects of its system, for a page that has none: nothing here prints, exits or reads.
// Without these, libc++ brings its stdio for messages that nobody could see: 25 KB compressed, and imports.

#include <cstddef>
#include <cstdlib>
#include <new>

extern "C" {
void abort() { __builtin_trap(); }
[[noreturn]] void __abort_message(const char*, ...) { __builtin_trap(); }
[[noreturn]] void __stack_chk_fail() { __builtin_trap(); }
std::size_t __stack_chk_guard = 0x5eed1e55;
char* getenv(const char*) { return nullptr; }
// The only thread of a page ends with the page.
int __cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }
// fmt asks it for hexadecimal floats alone, which nothing here writes.
int snprintf(char*, std::size_t, const char*, ...) { __builtin_trap(); }
}

namespace std {
inline namespace _LIBCPP_ABI_NAMESPACE {
[[noreturn]] void __libcpp_verbose_abort(const char*, ...) noexcept { __builtin_trap(); }
}  // namespace _LIBCPP_ABI_NAMESPACE
}  // namespace std

void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) __builtin_trap();
  return memory;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
