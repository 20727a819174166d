#include "lab/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lab/train.h"
#include "posenc/error.h"
#include "posenc/scheme.h"

namespace posenc::lab {
namespace {

// Jobs of one task that differ only in scheme and seed.
struct Family {
  Job pattern;
  std::vector<std::string_view> schemes;
  std::int64_t seeds = 1;
};

void add_family(std::vector<Job>& jobs, const Family& family, const Text& text) {
  for (std::int64_t seed = 1; seed <= family.seeds; ++seed) {
    for (const std::string_view scheme : family.schemes) {
      Job job = family.pattern;
      job.seed = static_cast<std::uint64_t>(seed);
      job.shape.scheme = scheme;
      const std::string_view prefix = job.name.empty() ? std::string_view(job.task) : std::string_view(job.name);
      job.name = fmt::format("{}-{}{}-{}", prefix, scheme, job.shape.random_positions > 0 ? "-random" : "", seed);
      fit_shape(job, text);
      check(job);
      jobs.push_back(std::move(job));
    }
  }
}

// Up to 8 times the trained length, as in the published tables.
Job text_job(std::int64_t steps, std::int64_t evaluated) {
  return {.task = "text", .steps = steps, .batch = 16, .sizes = {32, 64, 128, 256}, .evaluated = evaluated};
}

Job order_job() {
  return {
      .task = "order", .shape = {.heads = 2, .width = 32}, .size = 8, .steps = 500, .sizes = {8}, .evaluated = 2000};
}

Job copy_job() { return {.task = "copy", .size = 8, .steps = 1600, .sizes = {8, 9, 10, 12, 16}, .evaluated = 500}; }

// Fine-tunes the last jobs, one per seed: 200 steps with linear scaling to four times the trained length.
void add_tuned(std::vector<Job>& jobs, std::int64_t seeds, const Text& text) {
  const std::size_t parents = jobs.size();
  for (std::size_t i = parents - static_cast<std::size_t>(seeds); i < parents; ++i) {
    Job tuned = jobs[i];
    tuned.parent = tuned.name;
    tuned.name = fmt::format("tuned-linear-{}", tuned.seed);
    tuned.size = 1024;
    tuned.batch = 4;
    tuned.steps = 200;
    tuned.warmup = 20;
    tuned.learning_rate = 1e-3;
    tuned.sizes = {1024};
    tuned.extensions = {};
    fit_shape(tuned, text);
    tuned.shape.scaling = LinearScaling{4};
    check(tuned);
    jobs.push_back(std::move(tuned));
  }
}

std::vector<Job> smoke(const Text& text) {
  std::vector<Job> jobs;
  add_family(jobs, {text_job(350, 8192), {"alibi", "rope", "sinusoidal", "none"}, 3}, text);
  add_family(jobs, {order_job(), {"rope", "none"}, 3}, text);
  return jobs;
}

std::vector<Job> desk(const Text& text) {
  std::vector<Job> jobs;
  const std::int64_t seeds = 5;
  add_family(jobs,
             {text_job(500, 16'384),
              {"alibi", "rope", "sinusoidal", "learned", "none", "t5", "kerple", "fire", "xpos"},
              seeds},
             text);
  Job masked = text_job(500, 16'384);
  masked.task = "masked-text";
  masked.sizes = {32};
  add_family(jobs, {masked, {"sinusoidal", "none"}, seeds}, text);
  add_family(jobs, {order_job(), {"rope", "none"}, seeds}, text);

  // A setting where RoPE's extensions matter: a trained length of 256 and a head dimension of 32.
  Job extended = text_job(500, 16'384);
  extended.name = "extended";
  extended.size = 256;
  extended.batch = 4;
  extended.shape.heads = 2;
  extended.sizes = {256, 512, 1024, 2048};
  extended.extensions = {"linear", "ntk", "yarn", "llama3"};
  add_family(jobs, {extended, {"rope"}, seeds}, text);
  add_tuned(jobs, seeds, text);

  add_family(jobs, {copy_job(), {"alibi", "rope", "sinusoidal", "t5", "none"}, seeds}, text);
  Job random = copy_job();
  random.shape.random_positions = 64;
  add_family(jobs, {random, {"sinusoidal"}, seeds}, text);
  return jobs;
}

// What two cores cannot train in minutes: a trained length of 256 bytes, 5 million parameters, copying with six
// layers, induction at the published size.
std::vector<Job> full(const Text& text) {
  std::vector<Job> jobs;
  const std::int64_t seeds = 3;
  Job large = text_job(1500, 65'536);
  large.size = 256;
  large.batch = 32;
  large.sizes = {256, 512, 1024, 2048};
  large.learning_rate = 1e-3;
  large.warmup = 100;
  large.shape.layers = 6;
  large.shape.heads = 8;
  large.shape.width = 256;
  add_family(jobs, {large, {"alibi", "rope", "sinusoidal", "learned", "none", "t5", "kerple", "fire", "xpos"}, seeds},
             text);
  Job masked = large;
  masked.task = "masked-text";
  masked.steps = 6000;
  masked.sizes = {256};
  add_family(jobs, {masked, {"sinusoidal", "none"}, seeds}, text);
  add_family(jobs, {order_job(), {"rope", "none"}, seeds}, text);

  Job extended = large;
  extended.name = "extended";
  extended.extensions = {"linear", "ntk", "yarn", "llama3"};
  add_family(jobs, {extended, {"rope"}, seeds}, text);
  add_tuned(jobs, seeds, text);

  Job copy = copy_job();
  copy.size = 20;
  copy.sizes = {20, 21, 25, 30, 40};
  copy.steps = 10'000;
  copy.batch = 64;
  copy.learning_rate = 1e-3;
  copy.shape.layers = 6;
  copy.shape.width = 128;
  add_family(jobs, {copy, {"alibi", "rope", "sinusoidal", "t5", "none"}, seeds}, text);
  copy.shape.random_positions = 256;
  add_family(jobs, {copy, {"sinusoidal"}, seeds}, text);

  const Job induction{.task = "induction",
                      .size = 256,
                      .steps = 50'000,
                      .batch = 8,
                      .learning_rate = 1e-3,
                      .sizes = {64, 128, 256, 512, 1024},
                      .evaluated = 500};
  add_family(jobs, {induction, {"rope", "sinusoidal", "xpos"}, seeds}, text);
  return jobs;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"smoke", "18 small models in under a minute: who extrapolates, and that order needs position"},
      {"desk", "105 models, five seeds of each, in half an hour: every claim that fits on two cores"},
      {"full", "72 models of up to 5 million parameters: all claims; hours, so that it needs --long"},
  };
  return all;
}

std::vector<Job> jobs_of(std::string_view preset, const Text& text) {
  if (preset == "smoke") return smoke(text);
  if (preset == "desk") return desk(text);
  if (preset == "full") return full(text);
  std::vector<std::string_view> names;
  for (const Preset& one : presets()) names.push_back(one.name);
  raise(fmt::format("lab: unknown preset '{}' ({})", preset, suggestion(preset, names)));
}

double work_of(const Job& job) {
  const Task& task = task_named(job.task);
  const auto width = static_cast<double>(job.shape.width);
  const double for_each_token = static_cast<double>(job.shape.layers) * 12 * width * width;
  double tokens = 3.0 * static_cast<double>(job.steps * job.batch * task.length(job.size));
  for (const std::int64_t size : job.sizes) {
    const auto times = task.uses_text ? 1.0 : static_cast<double>(task.length(size));
    tokens += times * static_cast<double>(job.evaluated) * (1.0 + static_cast<double>(job.extensions.size()));
  }
  return tokens * for_each_token;
}

double estimated_seconds(const std::vector<Job>& jobs, const Text& text, int threads) {
  constexpr int kSteps = 2;
  const auto less = [](const Job& one, const Job& other) { return work_of(one) < work_of(other); };
  Job job = *std::max_element(jobs.begin(), jobs.end(), less);
  // A few sequences suffice: the work of a step is proportional to their number.
  job.batch = std::min<std::int64_t>(job.batch, 4);
  job.shards = std::min(job.shards, job.batch);
  job.sizes = {};
  job.steps = kSteps;
  Workers workers;
  workers.threads = threads;
  State state = begin(job);
  train_step(state, job, task_named(job.task), text, workers);  // the first step allocates
  const auto from = std::chrono::steady_clock::now();
  for (int i = 0; i < kSteps; ++i) train_step(state, job, task_named(job.task), text, workers);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  double work = 0;
  for (const Job& one : jobs) work += work_of(one);
  return seconds / work_of(job) * work;
}

}  // namespace posenc::lab
