#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/shape.h"
#include "lab/tasks.h"
#include "posenc/json.h"

namespace posenc::lab {

/// One model to train and to evaluate: everything that its numbers depend on beside the text.
struct Job {
  std::string name = {};  ///< of its folder: text-rope-1
  std::string task = "text";
  Shape shape = {};
  std::uint64_t seed = 1;
  std::int64_t size = 32;  ///< of the task's samples in training: that, or for questions up to that
  std::int64_t steps = 300, batch = 32;
  std::int64_t shards =
      4;  ///< parts of a batch whose gradients are summed in order; the number of threads is at most this
  double learning_rate = 3e-3, weight_decay = 0.1;
  std::int64_t warmup = 30;

  std::vector<std::int64_t> sizes = {};      ///< evaluated after training
  std::int64_t evaluated = 16'384;           ///< tokens of a text, or samples of a task, for each size
  std::vector<std::string> extensions = {};  ///< rope scalings that are evaluated too, by size / training size
  std::string parent = {};                   ///< begins with the parameters of this job; "": with random ones
  bool operator==(const Job&) const = default;
};

/// Throws: Error that names field, value and rule.
void check(const Job& job);
Json to_json(const Job& job);
Job job_from_json(const Json& json);

/// The model's sizes that follow from the task: vocabulary, mask, context and the longest sequence.
void fit_shape(Job& job, const Text& text);

/// Warm-up, then half a cosine down to a tenth.
double learning_rate_at(const Job& job, std::int64_t step);

}  // namespace posenc::lab
