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
  job.sizes = {32, 64, 128, 256};
  job.evaluated = evaluated;
  return job;
}

Job order_job(std::int64_t steps) {
  Job job;
  job.task = "order";
  job.size = 8;
  job.steps = steps;
  job.sizes = {8};
  job.evaluated = 2000;
  job.shape.width = 32;
  job.shape.heads = 2;
  return job;
}

Job copy_job(std::int64_t steps) {
  Job job;
  job.task = "copy";
  job.size = 10;
  job.steps = steps;
  job.sizes = {10, 11, 12, 14, 16, 20};
  job.evaluated = 500;
  return job;
}

std::vector<Job> smoke(const Text& text) {
  std::vector<Job> jobs;
  add_family(jobs, {text_job(250, 8192), {"alibi", "rope", "sinusoidal", "none"}, 3}, text);
  add_family(jobs, {order_job(150), {"rope", "none"}, 3}, text);
  return jobs;
}

std::vector<Job> desk(const Text& text) {
  std::vector<Job> jobs;
  add_family(
      jobs,
      {text_job(600, 32'768), {"alibi", "rope", "sinusoidal", "learned", "none", "t5", "kerple", "fire", "xpos"}, 3},
      text);
  Job masked = text_job(600, 32'768);
  masked.task = "masked-text";
  masked.sizes = {32};
  add_family(jobs, {masked, {"sinusoidal", "none"}, 3}, text);
  add_family(jobs, {order_job(200), {"rope", "none"}, 3}, text);
  add_family(jobs, {copy_job(1200), {"alibi", "rope", "sinusoidal", "t5", "none"}, 3}, text);
  Job random = copy_job(1200);
  random.shape.random_positions = 64;
  add_family(jobs, {random, {"sinusoidal"}, 3}, text);

  // where rope's extensions have something to extend: a trained length of 256 and 32 features in a head
  Job extended = text_job(600, 32'768);
  extended.name = "extended";
  extended.size = 256;
  extended.batch = 8;
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
  return jobs;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"smoke", "18 small models in under a minute: who extrapolates, and that order needs position"},
      {"desk", "61 models in about ten minutes: every claim that fits on two cores"},
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
