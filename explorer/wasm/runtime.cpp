// The few functions of the C and C++ libraries that print or ask the system, for a page that has none: with them, a
// module would need imports. Everything else, malloc and <cmath> among it, is wasi-libc's and libc++'s.

#include <cstddef>
#include <new>

extern "C" {
[[noreturn]] void __abort_message(const char*, ...) { __builtin_trap(); }
char* getenv(const char*) { return nullptr; }
// The only thread of a page ends with the page.
int __cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }
// fmt calls it for hexadecimal floats alone, which nothing here writes.
int snprintf(char*, std::size_t, const char*, ...) { __builtin_trap(); }

int posenc_out_of_memory = 0;  // 1 after a trap for want of memory; call.cpp exports it
}

namespace std {
inline namespace _LIBCPP_ABI_NAMESPACE {
[[noreturn]] void __libcpp_verbose_abort(const char*, ...) noexcept { __builtin_trap(); }
}  // namespace _LIBCPP_ABI_NAMESPACE
}  // namespace std

namespace {
[[maybe_unused]] const std::new_handler before_us = std::set_new_handler([] {
  posenc_out_of_memory = 1;
  __builtin_trap();
});
}  // namespace
