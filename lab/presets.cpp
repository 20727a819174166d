#include "lab/presets.h"

#include <fmt/format.h>

#include <algorithm>

#include "posenc/error.h"
#include "posenc/scheme.h"

namespace posenc::lab {
namespace {

// Jobs of one task, the same but for scheme and seed.
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

// 8 times the trained length at most, as the published tables have it.
Job text_job(std::int64_t steps, std::int64_t evaluated) {
  Job job;
  job.task = "text";
  job.steps = steps;
  job.batch = 16;
  job.sizes = {32, 64, 128, 256};
  job.evaluated = evaluated;
  return job;
}

Job order_job() {
  Job job;
  job.task = "order";
  job.size = 8;
  job.steps = 500;
  job.sizes = {8};
  job.evaluated = 2000;
  job.shape.width = 32;
  job.shape.heads = 2;
  return job;
}

Job copy_job() {
  Job job;
  job.task = "copy";
  job.size = 8;
  job.steps = 1600;
  job.sizes = {8, 9, 10, 12, 16};
  job.evaluated = 500;
  return job;
}

std::vector<Job> smoke(const Text& text) {
  std::vector<Job> jobs;
  add_family(jobs, {text_job(350, 8192), {"alibi", "rope", "sinusoidal", "none"}, 3}, text);
  add_family(jobs, {order_job(), {"rope", "none"}, 3}, text);
  return jobs;
}

std::vector<Job> desk(const Text& text) {
  std::vector<Job> jobs;
  const std::int64_t seeds = 2;
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

  // where rope's extensions have something to extend: a trained length of 256 and 32 features in a head
  Job extended = text_job(500, 16'384);
  extended.name = "extended";
  extended.size = 256;
  extended.batch = 4;
  extended.shape.heads = 2;
  extended.sizes = {256, 512, 1024, 2048};
  extended.extensions = {"linear", "ntk", "yarn", "llama3"};
  add_family(jobs, {extended, {"rope"}, 2}, text);
  const std::size_t parents = jobs.size();
  for (std::size_t i = parents - 2; i < parents; ++i) {
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

  add_family(jobs, {copy_job(), {"alibi", "rope", "sinusoidal", "t5", "none"}, seeds}, text);
  Job random = copy_job();
  random.shape.random_positions = 64;
  add_family(jobs, {random, {"sinusoidal"}, seeds}, text);
  return jobs;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"smoke", "18 small models in under a minute: who extrapolates, and that order needs position"},
      {"desk", "42 models in about ten minutes: every claim that fits on two cores"},
  };
  return all;
}

std::vector<Job> jobs_of(std::string_view preset, const Text& text) {
  if (preset == "smoke") return smoke(text);
  if (preset == "desk") return desk(text);
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

}  // namespace posenc::lab
