// Training: the same bits for any number of threads, and after an interruption; tasks as defined.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "lab/evaluate.h"
#include "lab/presets.h"
#include "posenc/error.h"

namespace posenc::training_test {
namespace {

using namespace lab;

const Text& text() {
  static const Text made = read_text("generated text", generated_text());
  return made;
}

Job small_job(const std::string& scheme = "rope", const std::string& task = "text") {
  Job job;
  job.name = "small";
  job.task = task;
  job.shape.scheme = scheme;
  job.shape.width = 16;
  job.shape.heads = 2;
  job.size = 8;
  job.sizes = {8, 16};
  job.batch = 8;
  job.steps = 20;
  job.warmup = 4;
  job.evaluated = 256;
  fit_shape(job, text());
  check(job);
  return job;
}

State trained(const Job& job, int steps, int threads = 1, State state = {}) {
  Workers workers;
  workers.threads = threads;
  if (state.network.parameters.empty()) state = begin(job);
  for (int i = 0; i < steps; ++i)
    state.metrics.push_back(train_step(state, job, task_named(job.task), text(), workers));
  return state;
}

void expect_same_bits(const std::vector<float>& one, const std::vector<float>& other) {
  ASSERT_EQ(one.size(), other.size());
  EXPECT_EQ(std::memcmp(one.data(), other.data(), one.size() * sizeof(float)), 0);
}

TEST(Training, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const std::string scheme : {"rope", "t5", "kerple", "fire"}) {
    const Job job = small_job(scheme);
    const State one = trained(job, 12, 1), three = trained(job, 12, 3);
    expect_same_bits(one.network.parameters, three.network.parameters);
    EXPECT_EQ(one.metrics.back().loss, three.metrics.back().loss);
  }
  // and the comparison can fail: another seed gives other bits
  Job other = small_job();
  other.seed = 2;
  EXPECT_NE(trained(other, 12).network.parameters, trained(small_job(), 12).network.parameters);
}

TEST(Training, ResumedEqualsUninterrupted) {
  for (const std::string scheme : {"learned", "kerple"}) {
    const Job job = small_job(scheme);
    const State whole = trained(job, 20);
    const State half = trained(job, 7);
    Checkpoint read = read_checkpoint(checkpoint_of(half, job, text()));
    EXPECT_EQ(read.job, job);
    EXPECT_EQ(read.state.step, 7);
    const State resumed = trained(read.job, 13, 2, std::move(read.state));
    expect_same_bits(resumed.network.parameters, whole.network.parameters);
    expect_same_bits(resumed.first, whole.first);
    expect_same_bits(resumed.second, whole.second);
    ASSERT_EQ(resumed.metrics.size(), whole.metrics.size());
    for (std::size_t i = 0; i < whole.metrics.size(); ++i) EXPECT_EQ(resumed.metrics[i].loss, whole.metrics[i].loss);
  }
}

TEST(Training, LearnsWhatItCan) {
  Job job = small_job("rope", "sum");
  job.task = "copy-same";
  job.size = 2;
  job.sizes = {2};
  job.steps = 150;
  job.batch = 32;
  job.learning_rate = 1e-2;
  fit_shape(job, text());
  const State state = trained(job, 150);
  EXPECT_LT(state.metrics.back().loss, 0.5 * state.metrics.front().loss);
}

TEST(Checkpoint, RefusesWhatIsNone) {
  const Job job = small_job();
  const std::string good = checkpoint_of(begin(job), job, text());
  const auto message_of = [](const std::string& bytes) -> std::string {
    try {
      read_checkpoint(bytes);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of(good), "");
  EXPECT_NE(message_of(good.substr(0, good.size() - 4)), "");
  EXPECT_NE(message_of("not a file"), "");
  std::string renamed = good;
  renamed.replace(renamed.find("adamw.first.norm.bias"), 21, "adamw.first.norm.bia_");
  EXPECT_NE(message_of(renamed).find("adamw.first.norm.bias"), std::string::npos);
  std::string other = good;
  other.replace(other.find("posenc-lab-1"), 12, "posenc-lab-9");
  EXPECT_NE(message_of(other).find("posenc-lab-9"), std::string::npos);
}

TEST(Evaluation, DoesNotDependOnThreadsAndHasTheLossOfTraining) {
  const Job job = small_job("alibi");
  const State state = trained(job, 3);
  const std::vector<Score> one = evaluate(state.network, job, text(), 1),
                           two = evaluate(state.network, job, text(), 2);
  ASSERT_EQ(one.size(), 2U);
  EXPECT_EQ(one[0].nll, two[0].nll);
  EXPECT_EQ(one[0].tokens, 256);
  EXPECT_EQ(one[0].by_position.size(), 8U);
  const double mean = std::accumulate(one[0].by_position.begin(), one[0].by_position.end(), 0.0) / 8;
  EXPECT_NEAR(mean, one[0].nll, 1e-12);
}

TEST(Evaluation, ExtendsRope) {
  Job job = small_job("rope");
  job.extensions = {"linear", "ntk", "yarn", "llama3"};
  const State state = trained(job, 3);
  const std::vector<Score> scores = evaluate(state.network, job, text(), 1);
  ASSERT_EQ(scores.size(), 6U);  // two sizes, and four extensions of the longer one
  std::set<double> different;
  for (const Score& score : scores) different.insert(score.nll);
  EXPECT_GE(different.size(), 5U);  // llama3 may leave all pairs of so short a context as they are
}

TEST(Attention, MapsAreWeights) {
  for (const std::string task : {"text", "order"}) {
    Job job = small_job("rope", task);
    const State state = trained(job, 2);
    const AttentionMaps maps = attention_maps(state.network, job, text());
    const std::int64_t length = maps.shape[3];
    ASSERT_EQ(maps.shape, (Extents{2, 2, length, length}));
    ASSERT_EQ(maps.weights.size(), static_cast<std::size_t>(count_of(maps.shape)));
    bool looks_ahead = false;
    for (std::int64_t row = 0; row < 2 * 2 * length; ++row) {
      const auto first = maps.weights.begin() + row * length;
      EXPECT_NEAR(std::accumulate(first, first + length, 0.0), 1, 1e-5);
      looks_ahead =
          looks_ahead || std::any_of(first + row % length + 1, first + length, [](float w) { return w > 0; });
    }
    EXPECT_EQ(looks_ahead, !job.shape.causal) << task;
  }
}

TEST(Estimates, AreSeconds) {
  const double seconds = estimated_seconds({small_job(), small_job("alibi")}, text(), 1);
  EXPECT_TRUE(std::isfinite(seconds) && seconds > 0) << seconds;
}

// --- tasks ---------------------------------------------------------------------------------------------------------

Sample sample_of(std::string_view task, std::int64_t size, std::int64_t number = 0) {
  Stream random(1, Purpose::kTraining, 0, number);
  return task_named(task).make(task_named(task), random, size);
}
std::vector<std::int32_t> answer_of(const Sample& sample) {
  std::vector<std::int32_t> answer;
  for (const std::int32_t target : sample.targets) {
    if (target >= 0) answer.push_back(target);
  }
  return answer;
}
std::vector<std::int32_t> question_of(const Sample& sample) {
  const auto end = std::find(sample.tokens.begin(), sample.tokens.end(), kSeparator);
  return {sample.tokens.begin() + 1, end};
}

TEST(Tasks, AskWhatTheySay) {
  for (std::int64_t number = 0; number < 50; ++number) {
    auto expected = question_of(sample_of("copy", 7, number));
    ASSERT_EQ(expected.size(), 7U);
    expected.push_back(kEnd);
    EXPECT_EQ(answer_of(sample_of("copy", 7, number)), expected);

    expected = question_of(sample_of("reverse", 5, number));
    std::reverse(expected.begin(), expected.end());
    expected.push_back(kEnd);
    EXPECT_EQ(answer_of(sample_of("reverse", 5, number)), expected);

    expected = question_of(sample_of("sort", 6, number));
    std::sort(expected.begin(), expected.end());
    expected.push_back(kEnd);
    EXPECT_EQ(answer_of(sample_of("sort", 6, number)), expected);

    const auto distinct = question_of(sample_of("copy-distinct", 20, number));
    EXPECT_EQ(std::set<std::int32_t>(distinct.begin(), distinct.end()).size(), 20U);

    const Sample order = sample_of("order", 6, number);
    const auto at = [&](std::int32_t token) {
      return std::find(order.tokens.begin(), order.tokens.end(), token) - order.tokens.begin();
    };
    EXPECT_EQ(order.targets.front(), at(kFirstSymbol) < at(kFirstSymbol + 1) ? kFirstSymbol : kFirstSymbol + 1);
    EXPECT_EQ(std::count(order.tokens.begin(), order.tokens.end(), kFirstSymbol), 1);

    const Sample induction = sample_of("induction", 12, number);
    const auto trigger = std::find(induction.tokens.begin(), induction.tokens.end(), kSeparator);
    EXPECT_EQ(induction.targets.back(), trigger[1]);
    EXPECT_EQ(induction.tokens.back(), kSeparator);

    const Sample recall = sample_of("recall", 20, number);
    const std::int32_t key = recall.tokens.back();
    const auto found = std::find(recall.tokens.begin(), recall.tokens.end() - 1, key);
    EXPECT_EQ(recall.targets.back(), found[1]);

    const auto digits = question_of(sample_of("odd-sum", 7, number));
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < 7; i += 2) sum += digits[i] - kFirstSymbol;
    EXPECT_EQ(answer_of(sample_of("odd-sum", 7, number)).front(), kFirstSymbol + sum % 5);

    const auto bits = question_of(sample_of("parity", 9, number));
    EXPECT_EQ(answer_of(sample_of("parity", 9, number)).front() - kFirstSymbol,
              std::count(bits.begin(), bits.end(), kFirstSymbol + 1) % 2);
    const auto pairs = question_of(sample_of("even-pairs", 9, number));
    int changes = 0;
    for (std::size_t i = 1; i < 9; ++i) changes += pairs[i] != pairs[i - 1] ? 1 : 0;
    EXPECT_EQ(answer_of(sample_of("even-pairs", 9, number)).front() - kFirstSymbol, changes % 2 == 0 ? 1 : 0);

    const auto missing = sample_of("missing-duplicate", 5, number);
    const auto hidden = std::find(missing.tokens.begin() + 1, missing.tokens.end(), kSeparator);
    EXPECT_EQ(answer_of(missing).front(), *(hidden - 5));
  }
}

TEST(Tasks, AddNumbers) {
  for (std::int64_t number = 0; number < 50; ++number) {
    for (const bool least_first : {true, false}) {
      const Sample sample = sample_of(least_first ? "add" : "add-most", 4, number);
      const auto value = [&](std::vector<std::int32_t> digits) {
        if (least_first) std::reverse(digits.begin(), digits.end());
        std::int64_t sum = 0;
        for (const std::int32_t digit : digits) sum = 10 * sum + digit - kFirstSymbol;
        return sum;
      };
      const auto question = question_of(sample);
      auto answer = answer_of(sample);
      answer.pop_back();
      EXPECT_EQ(value({question.begin(), question.begin() + 4}) + value({question.begin() + 5, question.end()}),
                value(answer));
    }
  }
}

TEST(Tasks, LookBackNamesItsDistance) {
  std::set<std::int32_t> distances;
  for (std::int64_t number = 0; number < 40; ++number) {
    const Sample sample = sample_of("look-back", 16, number);
    const std::int32_t which = sample.tokens.front() - kFirstSymbol - 12;
    ASSERT_TRUE(which >= 0 && which < 4);
    distances.insert(which);
    for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
      if (sample.targets[i] >= 0) {
        EXPECT_EQ(sample.targets[i], sample.tokens[i - (std::size_t{1} << which)]);
      }
    }
  }
  EXPECT_EQ(distances.size(), 4U);
}

TEST(Tasks, FitTheirLengthsAndVocabulary) {
  for (const Task& task : tasks()) {
    for (const std::int64_t size : {1, 2, 3, 8, 16}) {
      const Batch batch = make_batch(task, text(), {.seed = 3, .count = 20, .size = size, .is_training = false});
      EXPECT_LE(batch.length, task.length(size)) << task.name;
      const auto greatest = *std::max_element(batch.tokens.begin(), batch.tokens.end());
      EXPECT_LT(greatest, vocabulary_of(task, text())) << task.name;
      EXPECT_LT(*std::max_element(batch.targets.begin(), batch.targets.end()), vocabulary_of(task, text()))
          << task.name;
      if (task.name != "look-back" && task.name != "masked-text") {
        EXPECT_GE(batch.target_count(), 20) << task.name;
      }
    }
  }
}

TEST(Batches, AreTheSameWhoeverAsks) {
  const Task& task = task_named("copy");
  const Batch all = make_batch(task, text(), {.seed = 1, .step = 3, .count = 6, .size = 5, .is_training = false});
  const Batch last =
      make_batch(task, text(), {.seed = 1, .step = 3, .count = 2, .size = 5, .is_training = false, .first = 4});
  EXPECT_EQ(part_of(all, 4, 2).tokens, last.tokens);
}

TEST(Batches, DrawPositionsInOrder) {
  const Batch batch = make_batch(task_named("text"), text(),
                                 {.seed = 1, .count = 200, .size = 4, .is_training = true, .random_positions = 10});
  std::vector<int> counts(10, 0);
  for (std::size_t i = 0; i < batch.positions.size(); ++i) {
    ++counts[static_cast<std::size_t>(batch.positions[i])];
    if (i % 4 != 0) {
      EXPECT_GT(batch.positions[i], batch.positions[i - 1]);
    }
  }
  // each of ten is in four of ten draws: 80 of 200, within five deviations (√(200 · 0.24) = 6.9)
  for (const int count : counts) EXPECT_NEAR(count, 80, 35);
}

TEST(Presets, AreSoundAndHaveNamesOfTheirOwn) {
  for (const Preset& preset : presets()) {
    std::set<std::string> names;
    EXPECT_EQ(std::stoull(std::string(preset.summary)), jobs_of(preset.name, text()).size()) << preset.summary;
    for (const Job& job : jobs_of(preset.name, text())) {
      EXPECT_TRUE(names.insert(job.name).second) << job.name;
      EXPECT_EQ(job_from_json(parse_json(dump_json(to_json(job)))), job);
      EXPECT_TRUE(job.parent.empty() || names.count(job.parent) == 1) << job.name;
    }
  }
}

TEST(Jobs, RefuseWhatCannotBe) {
  const auto message_of = [](const auto& change) -> std::string {
    try {
      Job job = small_job();
      change(job);
      check(job);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message_of([](Job&) {}), "");
  EXPECT_EQ(message_of([](Job& job) { job.shape.scheme = "rop"; }),
            "lab: unknown scheme 'rop' (did you mean 'rope'?)");
  EXPECT_EQ(message_of([](Job& job) { job.shape.width = 18; }),
            "lab: width must be a multiple of 2·heads, 4, but is 18");
  EXPECT_NE(message_of([](Job& job) { job.shards = 9; }), "");
  EXPECT_NE(message_of([](Job& job) { job.shape.scheme = "alibi", job.extensions = {"yarn"}; }), "");
  EXPECT_NE(message_of([](Job& job) { job.learning_rate = 0; }), "");
}

}  // namespace
}  // namespace posenc::training_test
