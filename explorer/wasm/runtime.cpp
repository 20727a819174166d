// What a C++ program expects of its system, for a page that has none: nothing here prints, exits or reads.
// Without these, libc++ brings its stdio for messages that nobody could see: 25 KB compressed, and imports.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

// Memory: a list of free blocks for each size, four sizes to an octave. A tenth of the size of the C library's allocator;
// blocks are never joined, which a page with few sizes does not need.
namespace {

constexpr std::size_t kHeader = 8, kPage = 65536;

// 16, 20, 24, 28, 32, 40, 48, 56, 64, 80 …
constexpr std::size_t size_of_class(std::size_t index) { return (4 + index % 4) << (2 + index / 4); }
std::size_t class_of(std::size_t size) {
  if (size <= 16) return 0;
  const auto octave = static_cast<std::size_t>(std::bit_width(size - 1) - 1);  // 2^octave < size ≤ 2^(octave + 1)
  return 4 * (octave - 4) + ((size - 1) >> (octave - 2)) - 3;
}

struct Block {
  std::size_t index, unused;
  Block* next;  // where it is free; else the user's bytes begin here
};
static_assert(offsetof(Block, next) == kHeader);
std::array<Block*, 112> free_blocks;

}  // namespace

extern "C" {
extern unsigned char __heap_base;

void* malloc(std::size_t bytes) {
  static std::uintptr_t end = 0;
  if (bytes > std::size_t{1} << 31) return nullptr;
  const std::size_t index = class_of(bytes + kHeader);
  if (Block* const block = free_blocks[index]) {
    free_blocks[index] = block->next;
    return &block->next;
  }
  if (end == 0) end = (reinterpret_cast<std::uintptr_t>(&__heap_base) + 15) / 16 * 16;
  const std::size_t size = (size_of_class(index) + 7) / 8 * 8;
  const std::size_t have = __builtin_wasm_memory_size(0) * kPage;
  if (size > SIZE_MAX - end) return nullptr;
  if (end + size > have) {
    // an eighth more than is needed: growing detaches what the page has of the memory
    const std::size_t wanted = (end + size - have) / kPage + 1, more = wanted + have / kPage / 8;
    if (__builtin_wasm_memory_grow(0, more) == SIZE_MAX && __builtin_wasm_memory_grow(0, wanted) == SIZE_MAX)
      return nullptr;
  }
  auto* const block = reinterpret_cast<Block*>(end);
  end += size;
  block->index = index;
  return &block->next;
}
void free(void* memory) {
  if (memory == nullptr) return;
  auto* const block = reinterpret_cast<Block*>(static_cast<unsigned char*>(memory) - kHeader);
  block->next = free_blocks[block->index];
  free_blocks[block->index] = block;
}
void* calloc(std::size_t count, std::size_t each) {
  if (each != 0 && count > SIZE_MAX / each) return nullptr;
  void* const memory = malloc(count * each);
  if (memory != nullptr) std::memset(memory, 0, count * each);
  return memory;
}
// WebAssembly reads and writes at any address: an alignment is a hint.
void* aligned_alloc(std::size_t, std::size_t bytes) { return malloc(bytes); }
// The C library's own names for these.
void* __libc_malloc(std::size_t bytes) { return malloc(bytes); }
void* __libc_calloc(std::size_t count, std::size_t each) { return calloc(count, each); }
void __libc_free(void* memory) { free(memory); }
void* realloc(void* memory, std::size_t bytes) {
  if (memory == nullptr) return malloc(bytes);
  const auto* const block = reinterpret_cast<const Block*>(static_cast<unsigned char*>(memory) - kHeader);
  const std::size_t had = size_of_class(block->index) - kHeader;
  if (bytes <= had) return memory;
  void* const larger = malloc(bytes);
  if (larger == nullptr) return nullptr;
  std::memcpy(larger, memory, had);
  free(memory);
  return larger;
}
}

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

extern "C" int posenc_out_of_memory = 0;  // 1 after a trap for want of memory; call.cpp exports it

void* operator new(std::size_t bytes) {
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) {
    posenc_out_of_memory = 1;
    __builtin_trap();
  }
  return memory;
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
