// Training holds no more memory after many steps than after a few. Every allocation of this program by `new` is counted; with
// sanitizers, which have operators of their own, there is no such test.

#include "sanitized.h"

#if !POSENC_HAS_SANITIZER

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "lab/evaluate.h"
#include "lab/train.h"

namespace {

std::atomic<std::int64_t> lab_held = 0;

void* lab_take(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  void* const block = std::aligned_alloc(alignment, (size / alignment + 1) * alignment);
  if (block == nullptr) throw std::bad_alloc();
  lab_held += static_cast<std::int64_t>(malloc_usable_size(block));
  return block;
}
void lab_give_back(void* memory) noexcept {
  if (memory == nullptr) return;
  lab_held -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return lab_take(size); }
void* operator new[](std::size_t size) { return lab_take(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return lab_take(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory, std::align_val_t) noexcept { lab_give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { lab_give_back(memory); }
void operator delete(void* memory) noexcept { lab_give_back(memory); }
void operator delete[](void* memory) noexcept { lab_give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { lab_give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { lab_give_back(memory); }

namespace posenc::lab_memory_test {
namespace {

using namespace lab;

TEST(Memory, OfTrainingDoesNotGrow) {
  const Text text = read_text("generated text", generated_text());
  for (const std::string scheme : {"rope", "t5", "kerple", "fire", "learned"}) {
    Job job;
    job.name = "small";
    job.shape.scheme = scheme;
    job.shape.width = 16;
    job.shape.heads = 2;
    job.size = 8;
    job.batch = 8;
    job.steps = 100;
    fit_shape(job, text);
    State state = begin(job);
    Workers workers;
    workers.threads = 2;
    const auto train = [&](int steps) {
      for (int i = 0; i < steps; ++i) train_step(state, job, task_named(job.task), text, workers);
    };
    // Until both threads have taken a shard, and tasks of several lengths have met their longest, memory grows; what is
    // kept at every step would make it grow for ever.
    std::int64_t before = -1;
    for (int round = 0; round < 20 && lab_held != before; ++round) {
      before = lab_held;
      train(20);
    }
    const std::int64_t after_rounds = lab_held;
    EXPECT_EQ(after_rounds, before) << scheme;
    // and what is counted changes where something is kept
    const std::vector<float> kept(1000);
    EXPECT_GT(lab_held, after_rounds + 3999) << kept.size();
  }
}

}  // namespace
}  // namespace posenc::lab_memory_test

#endif
