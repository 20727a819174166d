#include "lab/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posenc/error.h"

namespace posenc::lab {
namespace {

template <class T> void take_value(const Json& json, std::string_view name, T& value) {
  const Json* const found = json.find(name);
  if (found == nullptr) raise(fmt::format("lab: a job has no \"{}\"", name));
  if constexpr (std::is_same_v<T, double>) {
    if (const auto* const whole = found->as<std::int64_t>()) {
      value = static_cast<double>(*whole);
      return;
    }
  }
  const T* const held = found->as<T>();
  if (held == nullptr) raise(fmt::format("lab: \"{}\" of a job has the wrong type", name));
  value = *held;
}

template <class T> void take_list(const Json& json, std::string_view name, std::vector<T>& list) {
  Json::Array values;
  take_value(json, name, values);
  list.clear();
  for (const Json& value : values) {
    const T* const held = value.as<T>();
    if (held == nullptr) raise(fmt::format("lab: \"{}\" of a job has an element of the wrong type", name));
    list.push_back(*held);
  }
}

}  // namespace

void check(const Job& job) {
  const Task& task = task_named(job.task);
  check(job.shape);
  check_between("size", job.size, 1, 1 << 16);
  check_between("steps", job.steps, 0, 100'000'000);
  check_between("batch", job.batch, 1, 1 << 16);
  check_between("shards", job.shards, 1, job.batch);
  check_between("evaluated", job.evaluated, 1, 100'000'000);
  if (!(job.learning_rate > 0 && job.learning_rate <= 1)) {
    raise(fmt::format("lab: the learning rate must be above 0, to 1, but is {}", job.learning_rate));
  }
  if (!(job.weight_decay >= 0 && job.weight_decay <= 10)) {
    raise(fmt::format("lab: weight decay must be 0 to 10 but is {}", job.weight_decay));
  }
  for (const std::int64_t size : job.sizes) check_between("size of an evaluation", size, 1, 1 << 18);
  const std::int64_t largest = job.sizes.empty() ? job.size : *std::max_element(job.sizes.begin(), job.sizes.end());
  if (job.task == "copy-distinct") check_between("size", std::max(job.size, largest), 1, task.symbols);
  if (task.causal != job.shape.causal) raise(fmt::format("lab: the task {} needs the other kind of model", job.task));
  if (!job.extensions.empty() && job.shape.scheme != "rope") {
    raise(fmt::format("lab: extensions are of rope, but the scheme is {}", job.shape.scheme));
  }
}

Json to_json(const Job& job) {
  Json::Array sizes(job.sizes.begin(), job.sizes.end()), extensions(job.extensions.begin(), job.extensions.end());
  return Json::Object{{"name", job.name},
                      {"task", job.task},
                      {"seed", static_cast<std::int64_t>(job.seed)},
                      {"size", job.size},
                      {"steps", job.steps},
                      {"batch", job.batch},
                      {"shards", job.shards},
                      {"learning_rate", job.learning_rate},
                      {"weight_decay", job.weight_decay},
                      {"warmup", job.warmup},
                      {"sizes", sizes},
                      {"evaluated", job.evaluated},
                      {"extensions", extensions},
                      {"parent", job.parent},
                      {"model", to_json(job.shape)}};
}

Job job_from_json(const Json& json) {
  Job job;
  std::int64_t seed = 0;
  take_value(json, "name", job.name);
  take_value(json, "task", job.task);
  take_value(json, "seed", seed);
  job.seed = static_cast<std::uint64_t>(seed);
  take_value(json, "size", job.size);
  take_value(json, "steps", job.steps);
  take_value(json, "batch", job.batch);
  take_value(json, "shards", job.shards);
  take_value(json, "learning_rate", job.learning_rate);
  take_value(json, "weight_decay", job.weight_decay);
  take_value(json, "warmup", job.warmup);
  take_list(json, "sizes", job.sizes);
  take_value(json, "evaluated", job.evaluated);
  take_list(json, "extensions", job.extensions);
  take_value(json, "parent", job.parent);
  const Json* const model = json.find("model");
  if (model == nullptr) raise("lab: a job has no \"model\"");
  job.shape = shape_from_json(*model);
  check(job);
  return job;
}

void fit_shape(Job& job, const Text& text) {
  const Task& task = task_named(job.task);
  std::int64_t longest = job.size;
  for (const std::int64_t size : job.sizes) longest = std::max(longest, size);
  job.shape.vocabulary = vocabulary_of(task, text);
  job.shape.causal = task.causal;
  job.shape.context = std::max<std::int64_t>(2, task.length(job.size));
  job.shape.longest = std::max(job.shape.context, task.length(longest));
}

double learning_rate_at(const Job& job, std::int64_t step) {
  if (step < job.warmup) return job.learning_rate * static_cast<double>(step + 1) / static_cast<double>(job.warmup);
  const std::int64_t rest = std::max<std::int64_t>(1, job.steps - job.warmup);
  const double share = static_cast<double>(step - job.warmup) / static_cast<double>(rest);
  return job.learning_rate * (0.1 + 0.45 * (1 + std::cos(3.141592653589793 * share)));
}

}  // namespace posenc::lab
