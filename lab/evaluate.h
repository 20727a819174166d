#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/train.h"

namespace posenc::lab {

/// How a model does at one size.
struct Score {
  std::string extension = "none";  ///< rope's scaling
  std::int64_t size = 0, length = 0;
  std::int64_t samples = 0, exact = 0;  ///< samples, and those of which every answer is right
  std::int64_t tokens = 0, right = 0;   ///< answers, and right ones
  double nll = 0;                       ///< nats for each answer, on average
  std::vector<double> by_position =
      {};  ///< the same for up to 32 equal parts of a sequence; NaN where none has an answer

  double perplexity() const;
  double accuracy() const { return static_cast<double>(exact) / static_cast<double>(samples); }
  /// nll of the last quarter of the positions: what a window that slides by a quarter of its length gives for all.
  double last_quarter() const;
};

/// At every size of the job, and for rope with every extension of it. The same bits for any number of threads.
std::vector<Score> evaluate(const Network<float>& network, const Job& job, const Text& text, int threads);
Score evaluate(const Network<float>& network, const Job& job, const Text& text, std::int64_t size, int threads);

/// How much each token of one sequence attends to each other one: [layers, heads, length, length]. The sequence is the
/// first that evaluation has at the trained size, or of 256 bytes of a text where that is longer.
struct AttentionMaps {
  Extents shape = {};
  std::vector<float> weights = {};
};
AttentionMaps attention_maps(const Network<float>& network, const Job& job, const Text& text);

Json to_json(const Score& score);
Score score_from_json(const Json& json);

}  // namespace posenc::lab
