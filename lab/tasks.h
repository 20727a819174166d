#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/network.h"
#include "lab/philox.h"
#include "lab/text.h"

namespace posenc::lab {

/// One sequence: tokens, and after which of them the model must predict what.
struct Sample {
  std::vector<std::int32_t> tokens, targets;
};

/// Something to learn. `size` is what grows from training to evaluation: tokens for texts and streams, else symbols of
/// the question.
struct Task {
  std::string_view name;
  std::string_view summary;
  bool causal = true;
  bool uses_text = false;
  bool is_scored_exactly = true;                        ///< by exact match; else by perplexity
  std::int64_t symbols = 16;                            ///< beside BOS, SEP and END; of texts, what occurs in them
  std::int64_t (*length)(std::int64_t size) = nullptr;  ///< tokens of the longest sample of a size
  Sample (*make)(const Task& task, Stream& random, std::int64_t size) = nullptr;
};

/// Tokens that are no symbols: before, between and after.
inline constexpr std::int32_t kBegin = 0, kSeparator = 1, kEnd = 2, kFirstSymbol = 3;

const std::vector<Task>& tasks();
/// Throws: Error for an unknown name, with a suggestion.
const Task& task_named(std::string_view name);

/// How many tokens there are: of a text, its symbols and one for what is masked.
std::int64_t vocabulary_of(const Task& task, const Text& text);

/// What a batch is made of.
struct BatchRequest {
  std::uint64_t seed = 1;
  std::int64_t step = 0, count = 1;
  std::int64_t size = 1;
  bool is_training = true;  ///< sizes are 1 … size then, and text comes from the first nine tenths
  std::int64_t first = 0;   ///< number of the first sample
  std::int64_t random_positions = 0;
};
/// The same samples whoever asks. A text in evaluation is cut into windows, one after another.
Batch make_batch(const Task& task, const Text& text, const BatchRequest& request);

}  // namespace posenc::lab
