#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/job.h"
#include "lab/network.h"

namespace posenc::lab {

/// What is written down of a step.
struct Metric {
  double step = 0, loss = 0, learning_rate = 0, gradient_norm = 0, tokens_per_second = 0;
};

/// A model in training: all that a checkpoint holds.
struct State {
  Network<float> network;
  std::vector<float> first, second;  ///< AdamW's moments, laid out as the parameters
  std::int64_t step = 0;
  std::vector<Metric> metrics;
};

/// Before the first step.
State begin(const Job& job);

/// The memory of training, kept from step to step.
struct Workers {
  int threads = 1;
  std::vector<Activations<float>> activations = {};
  std::vector<float> shards = {};     // [shards, parameters and one for the loss]
  std::vector<float> gradients = {};  // their sum
};

/// One step: the gradients of all shards of a batch, summed in their order, clipped to norm 1, and AdamW (β 0.9 and 0.99).
/// The new parameters have the same bits for any number of threads.
/// Throws: Error if the loss is not finite.
Metric train_step(State& state, const Job& job, const Task& task, const Text& text, Workers& workers);

/// Calls act(i) for i = 0 … count − 1 on this many threads; which thread calls which i is not determined. `act` is given the
/// number of its thread too. An exception of any is thrown here.
void for_each(std::int64_t count, int threads, const std::function<void(std::int64_t index, int thread)>& act);

// --- checkpoints ---------------------------------------------------------------------------------------------------

/// A .safetensors file: parameters by name, the optimiser's moments and metrics. Its metadata has the job, the step,
/// the text's fingerprint and a config that read_model supports.
std::string checkpoint_of(const State& state, const Job& job, const Text& text);

struct Checkpoint {
  Job job;
  State state;
  std::string text_fingerprint;
};
/// Throws: Error for bytes that are not a checkpoint of the lab; it says what is missing.
Checkpoint read_checkpoint(std::string_view bytes);
std::string shown_fingerprint(const Text& text);

}  // namespace posenc::lab
