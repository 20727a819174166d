#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/train.h"

namespace posenc::lab {

/// The results of a model at one size.
struct Score {
  std::string extension = "none";  ///< of RoPE
  std::int64_t size = 0, length = 0;
  std::int64_t samples = 0, exact = 0;   ///< samples, and those with every answer correct
  std::int64_t tokens = 0, right = 0;    ///< answers, and correct ones
  double nll = 0;                        ///< mean per answer, in nats
  std::vector<double> by_position = {};  ///< nll of up to 32 equal parts of a sequence; NaN: no answers there

  double perplexity() const;
  double accuracy() const { return static_cast<double>(exact) / static_cast<double>(samples); }
  /// nll over the last quarter of the positions: what a window that slides by a quarter of its length measures.
  double last_quarter() const;
};

/// Evaluates at every size of the job, and for RoPE with every extension of the job. Results are bit-identical for
/// any number of threads.
std::vector<Score> evaluate(const Network<float>& network, const Job& job, const Text& text, int threads);
Score evaluate(const Network<float>& network, const Job& job, const Text& text, std::int64_t size, int threads);

/// The attention weights of one sequence, [layers, heads, length, length]: the first that evaluation uses at the
/// trained size, or 256 bytes of a text if that size is larger.
struct AttentionMaps {
  Extents shape = {};
  std::vector<float> weights = {};
};
AttentionMaps attention_maps(const Network<float>& network, const Job& job, const Text& text);

Json to_json(const Score& score);
Score score_from_json(const Json& json);

}  // namespace posenc::lab
