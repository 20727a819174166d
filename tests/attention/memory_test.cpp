// How much attention allocates: with 32768 tokens, less than a tenth of q, k, v and out. Every allocation of this
// program is counted.

#include "attention/allocations.h"
#define POSENC_ON_ALLOCATION posenc::tests::count_allocation

#include <gtest/gtest.h>

#include <random>

#include "backends.h"
#include "held_memory.h"
#include "kernels/memory.h"
#include "posenc/posenc.h"

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
    const std::int64_t before = tests::held;
    tests::most_held = before;
    attention(view(out.data(), shape), view(x.data(), shape), view(x.data(), shape), view(x.data(), shape),
              {.position = form, .causal = true, .window = 64});
    const std::int64_t taken = tests::most_held - before, all = 4 * count * 4;
    EXPECT_LT(taken, all / 10) << form.index();
    RecordProperty("share_" + std::to_string(form.index()),
                   std::to_string(static_cast<double>(taken) / static_cast<double>(all)));
    printf("form %zu: %.2f %% of q, k, v and out\n", form.index(),
           100.0 * static_cast<double>(taken) / static_cast<double>(all));
  }
}

// Takes blocks of these sizes and gives them back, last first, as the buffers of a call are.
void use_blocks(const std::vector<std::size_t>& sizes) {
  std::array<void*, 64> places{};
  for (std::size_t i = 0; i < sizes.size(); ++i) places[i] = kernels::take_lines(sizes[i]);
  for (std::size_t i = sizes.size(); i-- > 0;) kernels::give_lines(places[i], sizes[i]);
}

// Whatever other jobs have left in a thread's memory, a job's second call finds what its first has given back.
TEST(KeptMemory, SecondCallAllocatesNothing) {
  const tests::CountOfThread count;
  std::mt19937 random(7);
  const auto sizes = [&](std::size_t blocks, std::size_t most) {
    std::vector<std::size_t> found(blocks);
    for (std::size_t& size : found) size = 64 * (1 + random() % (most / 64));
    return found;
  };
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    for (std::size_t jobs = 1 + random() % 8; jobs > 0; --jobs) use_blocks(sizes(1 + random() % 40, 1 << 20));
    const std::vector<std::size_t> job = sizes(1 + random() % 20, 1 << 18);
    use_blocks(job);
    const std::int64_t before = tests::allocations;
    use_blocks(job);
    ASSERT_EQ(tests::allocations - before, 0);
  }
}

}  // namespace
}  // namespace posenc::memory_test
