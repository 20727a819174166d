#include "lab/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "posenc/error.h"

namespace posenc::lab {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.99, kEpsilon = 1e-8, kClip = 1.0;

// AdamW (Loshchilov and Hutter, 2019), with the gradient times `factor`.
void update(State& state, const Job& job, const std::vector<float>& gradients, double factor) {
  const auto step = static_cast<double>(state.step + 1);
  const double rate = learning_rate_at(job, state.step);
  const double size1 = 1 - std::pow(kBeta1, step), size2 = 1 - std::pow(kBeta2, step);
  for (const Slice& slice : state.network.layout.slices) {
    const double decay = slice.decays ? rate * job.weight_decay : 0;
    for (std::int64_t at = slice.offset; at < slice.offset + slice.count; ++at) {
      const std::size_t i = at;
      const double gradient = static_cast<double>(gradients[i]) * factor;
      const double first = kBeta1 * static_cast<double>(state.first[i]) + (1 - kBeta1) * gradient;
      const double second = kBeta2 * static_cast<double>(state.second[i]) + (1 - kBeta2) * gradient * gradient;
      state.first[i] = static_cast<float>(first);
      state.second[i] = static_cast<float>(second);
      const double move = rate * (first / size1) / (std::sqrt(second / size2) + kEpsilon);
      float& value = state.network.parameters[i];
      value = static_cast<float>(static_cast<double>(value) * (1 - decay) - move);
    }
  }
}

}  // namespace

State begin(const Job& job) {
  State state;
  state.network.shape = job.shape;
  state.network.layout = layout_of(job.shape);
  state.network.parameters = initial_parameters<float>(state.network.layout, job.seed);
  state.first.assign(state.network.parameters.size(), 0.0f);
  state.second.assign(state.network.parameters.size(), 0.0f);
  return state;
}

void for_each(std::int64_t count, int threads, const std::function<void(std::int64_t index, int thread)>& act) {
  std::atomic<std::int64_t> next = 0;
  std::exception_ptr failure;
  std::mutex lock;
  const auto work = [&](int thread) {
    try {
      for (std::int64_t i = next++; i < count; i = next++) act(i, thread);
    } catch (...) {
      const std::lock_guard guard(lock);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads && thread < count; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

Metric train_step(State& state, const Job& job, const Task& task, const Text& text, Workers& workers) {
  const auto begin_time = std::chrono::steady_clock::now();
  const Batch batch = make_batch(task, text,
                                 {.seed = job.seed,
                                  .step = state.step,
                                  .count = job.batch,
                                  .size = job.size,
                                  .is_training = true,
                                  .random_positions = job.shape.random_positions});
  const Network<float>& network = state.network;
  const Position position = prepare_position(network.shape, network.layout, network.parameters.data(), batch.length);
  const auto targets = static_cast<double>(std::max<std::int64_t>(1, batch.target_count()));
  const std::int64_t each = network.layout.count + 1;  // and the loss
  workers.shards.assign(job.shards * each, 0.0f);
  workers.activations.resize(std::max(1, workers.threads));
  for_each(job.shards, workers.threads, [&](std::int64_t shard, int thread) {
    const std::int64_t from = job.batch * shard / job.shards, to = job.batch * (shard + 1) / job.shards;
    const Batch part = part_of(batch, from, to - from);
    Activations<float>& activations = workers.activations[thread];
    float* const gradients = workers.shards.data() + shard * each;
    forward(network, position, part, activations);
    gradients[each - 1] = static_cast<float>(backward(network, position, part, 1 / targets, activations, gradients));
  });

  workers.gradients.assign(each, 0.0f);
  for (std::int64_t shard = 0; shard < job.shards; ++shard) {
    const float* const from = workers.shards.data() + shard * each;
    for (std::int64_t i = 0; i < each; ++i) workers.gradients[i] += from[i];
  }
  const double loss = static_cast<double>(workers.gradients.back()) / targets;
  if (!std::isfinite(loss)) raise(fmt::format("lab: {}: the loss of step {} is not finite", job.name, state.step));
  double squares = 0;
  for (std::int64_t i = 0; i + 1 < each; ++i) {
    const auto value = static_cast<double>(workers.gradients[i]);
    squares += value * value;
  }
  const double norm = std::sqrt(squares);
  const double rate = learning_rate_at(job, state.step);
  update(state, job, workers.gradients, norm > kClip ? kClip / norm : 1.0);
  ++state.step;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_time).count();
  return {static_cast<double>(state.step), loss, rate, norm,
          static_cast<double>(batch.count * batch.length) / std::max(seconds, 1e-9)};
}

}  // namespace posenc::lab
