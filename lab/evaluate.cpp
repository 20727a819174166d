#include "lab/evaluate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "posenc/error.h"

namespace posenc::lab {
namespace {

constexpr std::int64_t kParts = 32;
constexpr std::int64_t kTokensAtOnce = 4096;
constexpr std::int64_t kLongestMap = 256;

struct Sums {
  std::int64_t exact = 0, tokens = 0, right = 0;
  double nll = 0;
  std::vector<double> nll_of_part;
  std::vector<std::int64_t> tokens_of_part;
};

Sums sums_of(const Batch& batch, const std::vector<RowLoss>& losses, std::int64_t parts) {
  Sums sums;
  sums.nll_of_part.assign(parts, 0.0);
  sums.tokens_of_part.assign(parts, 0);
  for (std::int64_t i = 0; i < batch.count; ++i) {
    bool is_exact = true;
    for (std::int64_t t = 0; t < batch.length; ++t) {
      const std::size_t at = i * batch.length + t;
      if (batch.targets[at] < 0) continue;
      const std::size_t part = t * parts / batch.length;
      sums.nll += losses[at].nll;
      sums.nll_of_part[part] += losses[at].nll;
      ++sums.tokens_of_part[part];
      ++sums.tokens;
      sums.right += losses[at].is_greatest ? 1 : 0;
      is_exact = is_exact && losses[at].is_greatest;
    }
    sums.exact += is_exact ? 1 : 0;
  }
  return sums;
}

}  // namespace

double Score::perplexity() const { return std::exp(nll); }

double Score::last_quarter() const {
  double sum = 0, count = 0;
  for (std::size_t part = by_position.size() * 3 / 4; part < by_position.size(); ++part) {
    if (std::isnan(by_position[part])) continue;
    sum += by_position[part];
    ++count;
  }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

Score evaluate(const Network<float>& network, const Job& job, const Text& text, std::int64_t size, int threads) {
  const Task& task = task_named(job.task);
  const std::int64_t length = task.length(size);
  std::int64_t samples = job.evaluated;
  if (task.uses_text) {
    const std::int64_t rest = static_cast<std::int64_t>(text.symbols.size()) - text.training - 1;
    samples = std::min(job.evaluated, rest) / size;
    if (samples < 1) raise("lab: the text is too short to evaluate windows of this size");
  }
  const std::int64_t each = std::clamp<std::int64_t>(kTokensAtOnce / length, 1, samples);
  const std::int64_t chunks = (samples + each - 1) / each, parts = std::min(kParts, length);
  std::vector<Sums> sums(chunks);
  std::vector<Activations<float>> activations(std::max(1, threads));
  const Position position = prepare_position(network.shape, network.layout, network.parameters.data(), length);
  for_each(chunks, threads, [&](std::int64_t chunk, int thread) {
    const Batch batch = make_batch(task, text,
                                   {.seed = job.seed,
                                    .step = size,
                                    .count = std::min(each, samples - chunk * each),
                                    .size = size,
                                    .is_training = false,
                                    .first = chunk * each,
                                    .random_positions = network.shape.random_positions});
    Activations<float>& memory = activations[thread];
    forward(network, position, batch, memory);
    losses_of(batch, memory, network.shape.vocabulary);
    sums[chunk] = sums_of(batch, memory.losses, parts);
  });
  Score score;
  score.size = size;
  score.length = length;
  score.samples = samples;
  score.by_position.assign(parts, 0.0);
  std::vector<std::int64_t> counts(parts, 0);
  for (const Sums& part : sums) {
    score.exact += part.exact;
    score.tokens += part.tokens;
    score.right += part.right;
    score.nll += part.nll;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      score.by_position[i] += part.nll_of_part[i];
      counts[i] += part.tokens_of_part[i];
    }
  }
  score.nll /= static_cast<double>(std::max<std::int64_t>(1, score.tokens));
  for (std::size_t i = 0; i < counts.size(); ++i) {
    score.by_position[i] = counts[i] > 0 ? score.by_position[i] / static_cast<double>(counts[i])
                                         : std::numeric_limits<double>::quiet_NaN();
  }
  return score;
}

std::vector<Score> evaluate(const Network<float>& network, const Job& job, const Text& text, int threads) {
  std::vector<Score> scores;
  for (const std::int64_t size : job.sizes) scores.push_back(evaluate(network, job, text, size, threads));
  for (const std::string& name : job.extensions) {
    for (const std::int64_t size : job.sizes) {
      if (size <= job.size) continue;
      Network<float> extended = network;
      const double factor = static_cast<double>(size) / static_cast<double>(job.size);
      extended.shape.scaling = extension_named(name, factor, job.shape.context);
      scores.push_back(evaluate(extended, job, text, size, threads));
      scores.back().extension = name;
    }
  }
  return scores;
}

AttentionMaps attention_maps(const Network<float>& network, const Job& job, const Text& text) {
  const Task& task = task_named(job.task);
  const std::int64_t size = task.uses_text ? std::min(job.size, kLongestMap) : job.size;
  const Batch batch = make_batch(task, text,
                                 {.seed = job.seed,
                                  .step = size,
                                  .count = 1,
                                  .size = size,
                                  .is_training = false,
                                  .random_positions = network.shape.random_positions});
  const Position position = prepare_position(network.shape, network.layout, network.parameters.data(), batch.length);
  Activations<float> memory;
  forward(network, position, batch, memory);
  AttentionMaps maps;
  maps.shape = {network.shape.layers, network.shape.heads, batch.length, batch.length};
  for (std::int64_t layer = 0; layer < network.shape.layers; ++layer) {
    const std::vector<float> weights = attention_weights(network, position, batch, memory, layer);
    maps.weights.insert(maps.weights.end(), weights.begin(), weights.end());
  }
  return maps;
}

Json to_json(const Score& score) {
  Json::Array parts(score.by_position.begin(), score.by_position.end());
  return Json::Object{{"extension", score.extension}, {"size", score.size},   {"length", score.length},
                      {"samples", score.samples},     {"exact", score.exact}, {"tokens", score.tokens},
                      {"right", score.right},         {"nll", score.nll},     {"by_position", parts}};
}

Score score_from_json(const Json& json) {
  Score score;
  const auto whole = [&](std::string_view name, std::int64_t& value) {
    const auto* const found = json.find<std::int64_t>(name);
    if (found == nullptr) raise("lab: a score lacks a number");
    value = *found;
  };
  const auto number = [](const Json& value) {
    if (const auto* const held = value.as<double>()) return *held;
    if (const auto* const held = value.as<std::int64_t>()) return static_cast<double>(*held);
    return std::numeric_limits<double>::quiet_NaN();
  };
  const auto* const extension = json.find<std::string>("extension");
  const Json* const nll = json.find("nll");
  const auto* const parts = json.find<Json::Array>("by_position");
  if (extension == nullptr || nll == nullptr || parts == nullptr) raise("lab: a score lacks a field");
  score.extension = *extension;
  score.nll = number(*nll);
  whole("size", score.size);
  whole("length", score.length);
  whole("samples", score.samples);
  whole("exact", score.exact);
  whole("tokens", score.tokens);
  whole("right", score.right);
  for (const Json& part : *parts) score.by_position.push_back(number(part));
  return score;
}

}  // namespace posenc::lab
