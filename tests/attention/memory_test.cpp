// What attention allocates: with 32768 tokens, less than a tenth of q, k, v and out. Every allocation of this program
// is counted.

#include "attention/allocations.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "backends.h"
#include "posenc/posenc.h"

namespace {

std::atomic<std::int64_t> held = 0, most_held = 0;

// The C library's, counted by what it gave: libraries may free what this program allocated, or the other way round, with
// their own operators.
void* take(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  posenc::tests::count_allocation();
  void* const block = std::aligned_alloc(alignment, (size / alignment + 1) * alignment);
  if (block == nullptr) throw std::bad_alloc();
  const std::int64_t now = held += static_cast<std::int64_t>(malloc_usable_size(block));
  std::int64_t most = most_held;
  while (now > most && !most_held.compare_exchange_weak(most, now)) {}
  return block;
}
void give_back(void* memory) noexcept {
  if (memory == nullptr) return;
  held -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

#if POSENC_COUNTS_MALLOC
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  posenc::tests::count_allocation();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  posenc::tests::count_allocation();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  posenc::tests::count_allocation();
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  posenc::tests::count_allocation();
  return __libc_memalign(alignment, size);
}
}
#endif

void* operator new(std::size_t size) { return take(size); }
void* operator new[](std::size_t size) { return take(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return take(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }

namespace posenc::memory_test {
namespace {

// The window makes it quick; nothing that is allocated depends on it.
TEST(Attention, TakesLessThanATenthOfItsTensors) {
  const std::int64_t heads = 8, tokens = 32768, features = 64, count = heads * tokens * features;
  const Extents shape = {1, heads, tokens, features};
  const std::vector<float> x(static_cast<std::size_t>(count), 0.1f), buckets(32 * heads, 0.1f);
  std::vector<float> out(static_cast<std::size_t>(count));
  const Form forms[] = {Nothing{}, prepare(Alibi{.heads = heads}),
                        prepare(T5{.heads = heads}, {.weights = view(buckets.data(), {32, heads})}),
                        prepare(Rope{.dims = features})};
  for (const Form& form : forms) {
    const std::int64_t before = held;
    most_held = before;
    attention(view(out.data(), shape), view(x.data(), shape), view(x.data(), shape), view(x.data(), shape),
              {.position = form, .causal = true, .window = 64});
    const std::int64_t taken = most_held - before, all = 4 * count * 4;
    EXPECT_LT(taken, all / 10) << form.index();
    RecordProperty("share_" + std::to_string(form.index()),
                   std::to_string(static_cast<double>(taken) / static_cast<double>(all)));
    printf("form %zu: %.2f %% of q, k, v and out\n", form.index(),
           100.0 * static_cast<double>(taken) / static_cast<double>(all));
  }
}

}  // namespace
}  // namespace posenc::memory_test
