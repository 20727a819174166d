// Training uses no more memory after many steps than after a few. Every allocation of this program by `new` is
// counted; with sanitizers, which have their own operators, the test is omitted.

#include "sanitized.h"

#if !POSENC_HAS_SANITIZER

#include <gtest/gtest.h>

#include "held_memory.h"
#include "lab/evaluate.h"
#include "lab/train.h"

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
    for (int round = 0; round < 20 && tests::held != before; ++round) {
      before = tests::held;
      train(20);
    }
    const std::int64_t after_rounds = tests::held;
    EXPECT_EQ(after_rounds, before) << scheme;
    // and what is counted changes where something is kept
    const std::vector<float> kept(1000);
    EXPECT_GT(tests::held, after_rounds + 3999) << kept.size();
  }
}

}  // namespace
}  // namespace posenc::lab_memory_test

#endif
