#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/network.h"
#include "lab/philox.h"
#include "lab/text.h"

namespace posenc::lab {

/// One sequence: its tokens, and the target that the model must predict after each; −1: none.
struct Sample {
  std::vector<std::int32_t> tokens, targets;
};

/// A task to learn. `size` is what grows from training to evaluation: tokens for texts and streams, symbols of the
/// question for other tasks.
struct Task {
  std::string_view name;
  std::string_view summary;
  bool causal = true;
  bool uses_text = false;
  bool is_scored_exactly = true;                        ///< by exact match; else by perplexity
  std::int64_t symbols = 16;                            ///< besides BOS, SEP and END; for texts, those that occur
  std::int64_t (*length)(std::int64_t size) = nullptr;  ///< of the longest sample of a size, in tokens
  Sample (*make)(const Task& task, Stream& random, std::int64_t size) = nullptr;
};

/// Special tokens: before, between and after symbols.
inline constexpr std::int32_t kBegin = 0, kSeparator = 1, kEnd = 2, kFirstSymbol = 3;

const std::vector<Task>& tasks();
/// Throws: Error for an unknown name, with a suggestion.
const Task& task_named(std::string_view name);

/// The number of tokens; for texts, the symbols and a mask token.
std::int64_t vocabulary_of(const Task& task, const Text& text);

struct BatchRequest {
  std::uint64_t seed = 1;
  std::int64_t step = 0, count = 1;
  std::int64_t size = 1;
  bool is_training = true;  ///< sizes are 1 … size, and text is from the first nine tenths
  std::int64_t first = 0;   ///< number of the first sample
  std::int64_t random_positions = 0;
};
/// Depends only on its arguments. In evaluation, a text is split into consecutive windows.
Batch make_batch(const Task& task, const Text& text, const BatchRequest& request);

}  // namespace posenc::lab
