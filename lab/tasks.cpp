#include "lab/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "posenc/error.h"
#include "posenc/scheme.h"

namespace posenc::lab {
namespace {

std::int32_t symbol(Stream& random, std::int64_t count) {
  return kFirstSymbol + static_cast<std::int32_t>(random.below(count));
}

// BEGIN question SEPARATOR answer END: the loss is on the answer and END. One forward pass scores the whole answer:
// greedy decoding is correct if and only if every next token has the largest logit.
Sample question_and_answer(const std::vector<std::int32_t>& question, const std::vector<std::int32_t>& answer) {
  Sample sample;
  sample.tokens.push_back(kBegin);
  sample.tokens.insert(sample.tokens.end(), question.begin(), question.end());
  sample.tokens.push_back(kSeparator);
  sample.targets.assign(sample.tokens.size() - 1, -1);
  for (const std::int32_t token : answer) {
    sample.targets.push_back(token);
    sample.tokens.push_back(token);
  }
  sample.targets.push_back(kEnd);
  return sample;
}

std::vector<std::int32_t> random_symbols(Stream& random, std::int64_t symbols, std::int64_t count) {
  std::vector<std::int32_t> list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back(symbol(random, symbols));
  return list;
}

Sample copy_sample(const Task& task, Stream& random, std::int64_t size) {
  const auto question = random_symbols(random, task.symbols, size);
  return question_and_answer(question, question);
}

Sample copy_same_sample(const Task& task, Stream& random, std::int64_t size) {
  const std::vector<std::int32_t> question(size, symbol(random, task.symbols));
  return question_and_answer(question, question);
}

// Without replacement: each symbol determines its successor.
Sample copy_distinct_sample(const Task& task, Stream& random, std::int64_t size) {
  std::vector<std::int32_t> all(task.symbols);
  std::iota(all.begin(), all.end(), kFirstSymbol);
  for (std::int64_t i = 0; i < size; ++i) {
    std::swap(all[i], all[i + random.below(task.symbols - i)]);
  }
  all.resize(size);
  return question_and_answer(all, all);
}

Sample reverse_sample(const Task& task, Stream& random, std::int64_t size) {
  const auto question = random_symbols(random, task.symbols, size);
  return question_and_answer(question, {question.rbegin(), question.rend()});
}

Sample sort_sample(const Task& task, Stream& random, std::int64_t size) {
  const auto question = random_symbols(random, task.symbols, size);
  auto answer = question;
  std::sort(answer.begin(), answer.end());
  return question_and_answer(question, answer);
}

// After each token, the one k tokens before it. Each sample has one k, named by its first token.
Sample look_back_sample(const Task& task, Stream& random, std::int64_t size) {
  const std::int64_t distances[] = {1, 2, 4, 8};
  const std::int64_t which = random.below(4);
  Sample sample;
  sample.tokens = random_symbols(random, task.symbols - 4, size);
  sample.tokens.insert(sample.tokens.begin(), kFirstSymbol + static_cast<std::int32_t>(task.symbols - 4 + which));
  sample.targets.assign(sample.tokens.size(), -1);
  for (std::int64_t i = 1 + distances[which]; i <= size; ++i) {
    sample.targets[i] = sample.tokens[i - distances[which]];
  }
  return sample;
}

// A trigger (SEPARATOR) occurs once, followed by a symbol. The sequence ends with the trigger, and the answer is that
// symbol.
Sample induction_sample(const Task& task, Stream& random, std::int64_t size) {
  Sample sample;
  sample.tokens = random_symbols(random, task.symbols, std::max<std::int64_t>(size, 3));
  const auto last = static_cast<std::int64_t>(sample.tokens.size()) - 1;
  const std::int64_t at = random.below(last - 1);
  sample.tokens[at] = kSeparator;
  sample.tokens[last] = kSeparator;
  sample.targets.assign(sample.tokens.size(), -1);
  sample.targets.back() = sample.tokens[at + 1];
  return sample;
}

// Key–value pairs among filler; the sequence ends with a key, and the answer is its value. A third of the symbols are
// keys, a third are values, the rest filler.
Sample recall_sample(const Task& task, Stream& random, std::int64_t size) {
  const std::int64_t third = task.symbols / 3, length = std::max<std::int64_t>(size, 4);
  const std::int64_t pairs = std::min<std::int64_t>({third, length / 4, 4});
  Sample sample;
  for (std::int64_t i = 0; i < length; ++i) {
    sample.tokens.push_back(kFirstSymbol +
                            static_cast<std::int32_t>(2 * third + random.below(task.symbols - 2 * third)));
  }
  const std::int64_t asked = random.below(pairs), shift = random.below(third);
  std::int32_t answer = 0, question = 0;
  for (std::int64_t i = 0; i < pairs; ++i) {  // each in its own part of the sequence, so that pairs do not overlap
    const std::int64_t from = i * length / pairs, room = (i + 1) * length / pairs - from - 1;
    const std::size_t at = from + random.below(room);
    const auto key = kFirstSymbol + static_cast<std::int32_t>((shift + i) % third);
    const auto value = kFirstSymbol + static_cast<std::int32_t>(third + random.below(third));
    sample.tokens[at] = key;
    sample.tokens[at + 1] = value;
    if (i == asked) question = key, answer = value;
  }
  sample.tokens.push_back(kSeparator);
  sample.tokens.push_back(question);
  sample.targets.assign(sample.tokens.size(), -1);
  sample.targets.back() = answer;
  return sample;
}

// The sum of the digits modulo the number of symbols: of every second digit (which depends on order), or of all
// (which does not).
Sample sum_of_places(const Task& task, Stream& random, std::int64_t size, std::int64_t step) {
  const auto question = random_symbols(random, task.symbols, size);
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < size; i += step) sum += question[i] - kFirstSymbol;
  return question_and_answer(question, {kFirstSymbol + static_cast<std::int32_t>(sum % task.symbols)});
}
Sample odd_sum_sample(const Task& task, Stream& random, std::int64_t size) {
  return sum_of_places(task, random, size, 2);
}
Sample sum_sample(const Task& task, Stream& random, std::int64_t size) {
  return sum_of_places(task, random, size, 1);
}

// Two numbers with `size` digits; symbols 0 … 9 and +.
Sample addition(Stream& random, std::int64_t size, bool least_first) {
  std::vector<std::int32_t> a, b, sum;
  std::int32_t carry = 0;
  for (std::int64_t i = 0; i < size; ++i) {  // least significant first
    a.push_back(static_cast<std::int32_t>(random.below(10)));
    b.push_back(static_cast<std::int32_t>(random.below(10)));
    const std::int32_t digit = a.back() + b.back() + carry;
    sum.push_back(digit % 10);
    carry = digit / 10;
  }
  sum.push_back(carry);
  for (std::vector<std::int32_t>* const number : {&a, &b, &sum}) {
    if (!least_first) std::reverse(number->begin(), number->end());
    for (std::int32_t& digit : *number) digit += kFirstSymbol;
  }
  a.push_back(kFirstSymbol + 10);
  a.insert(a.end(), b.begin(), b.end());
  return question_and_answer(a, sum);
}
Sample add_least_sample(const Task&, Stream& random, std::int64_t size) { return addition(random, size, true); }
Sample add_most_sample(const Task&, Stream& random, std::int64_t size) { return addition(random, size, false); }

// A string repeated, with one symbol of the repetition replaced by SEPARATOR; the answer is that symbol (Ruoss et
// al.).
Sample missing_duplicate_sample(const Task& task, Stream& random, std::int64_t size) {
  auto once = random_symbols(random, task.symbols, size);
  std::vector<std::int32_t> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  const std::int64_t at = random.below(size);
  twice[size + at] = kSeparator;
  return question_and_answer(twice, {once[at]});
}

// Even pairs, of two symbols: whether the first and the last agree, that is, whether the number of ab and ba is even.
Sample even_pairs_sample(const Task&, Stream& random, std::int64_t size) {
  const auto question = random_symbols(random, 2, size);
  return question_and_answer(question, {question.front() == question.back() ? kFirstSymbol + 1 : kFirstSymbol});
}
Sample parity_sample(const Task&, Stream& random, std::int64_t size) {
  const auto question = random_symbols(random, 2, size);
  const auto ones = std::count(question.begin(), question.end(), kFirstSymbol + 1);
  return question_and_answer(question, {kFirstSymbol + static_cast<std::int32_t>(ones % 2)});
}

// For an encoder: filler with one A and one B. The output at the first token says which comes first.
Sample order_sample(const Task& task, Stream& random, std::int64_t size) {
  const std::int64_t length = std::max<std::int64_t>(size, 2);
  Sample sample;
  for (std::int64_t i = 0; i < length; ++i) {
    sample.tokens.push_back(kFirstSymbol + 2 + static_cast<std::int32_t>(random.below(task.symbols - 2)));
  }
  const std::int64_t a = random.below(length), b = (a + 1 + random.below(length - 1)) % length;
  sample.tokens[a] = kFirstSymbol;
  sample.tokens[b] = kFirstSymbol + 1;
  sample.tokens.insert(sample.tokens.begin(), kBegin);
  sample.targets.assign(sample.tokens.size(), -1);
  sample.targets.front() = a < b ? kFirstSymbol : kFirstSymbol + 1;
  return sample;
}

constexpr auto kTwice = [](std::int64_t size) { return 2 * size + 2; };
constexpr auto kOneAnswer = [](std::int64_t size) { return size + 3; };
constexpr auto kStream = [](std::int64_t size) { return std::max<std::int64_t>(size, 3) + 1; };

// --- texts -------------------------------------------------------------------------------------------------------

// Predicts the next symbol, or symbols that are masked with a probability of 15%.
Sample text_sample(const Task& task, const Text& text, const BatchRequest& request, Stream& random,
                   std::int64_t index) {
  const auto all = static_cast<std::int64_t>(text.symbols.size());
  const std::int64_t begin =
      request.is_training ? random.below(text.training - request.size - 1) : text.training + index * request.size;
  if (begin + request.size + 1 > all) raise("lab: the text is too short for so many windows");
  const auto first = text.symbols.begin() + begin;
  Sample sample;
  sample.tokens.assign(first, first + request.size);
  if (task.causal) {
    sample.targets.assign(first + 1, first + request.size + 1);
    return sample;
  }
  const auto mask = static_cast<std::int32_t>(text.alphabet.size());
  sample.targets.assign(sample.tokens.size(), -1);
  for (std::size_t i = 0; i < sample.tokens.size(); ++i) {
    if (random.below(100) >= 15) continue;
    sample.targets[i] = sample.tokens[i];
    sample.tokens[i] = mask;
  }
  return sample;
}

// Draws `count` of 0 … limit − 1 in ascending order, each subset equally likely (selection sampling).
void draw_positions(Stream& random, std::int64_t count, std::int64_t limit, std::int64_t* to) {
  std::int64_t wanted = count;
  for (std::int64_t p = 0; wanted > 0; ++p) {
    if (random.below(limit - p) >= wanted) continue;
    *to++ = p;
    --wanted;
  }
}

}  // namespace

const std::vector<Task>& tasks() {
  static const std::vector<Task> all = {
      {"text", "predict the next byte of a text", true, true, false, 0, [](std::int64_t n) { return n; }, nullptr},
      {"masked-text", "predict hidden bytes of a text (an encoder)", false, true, false, 0,
       [](std::int64_t n) { return n; }, nullptr},
      {"copy", "repeat random symbols", true, false, true, 16, kTwice, copy_sample},
      {"copy-same", "repeat one symbol as often: pure counting", true, false, true, 16, kTwice, copy_same_sample},
      {"copy-distinct", "repeat symbols of which none occurs twice", true, false, true, 64, kTwice,
       copy_distinct_sample},
      {"reverse", "repeat symbols backwards", true, false, true, 16, kTwice, reverse_sample},
      {"sort", "sort symbols", true, false, true, 5, kTwice, sort_sample},
      {"look-back", "name the symbol 1, 2, 4 or 8 tokens back", true, false, true, 16, kStream, look_back_sample},
      {"induction", "name the symbol that followed a trigger", true, false, true, 16, kStream, induction_sample},
      {"recall", "look up the value of a key among filler", true, false, true, 24,
       [](std::int64_t n) { return std::max<std::int64_t>(n, 4) + 2; }, recall_sample},
      {"odd-sum", "sum every other digit modulo 5", true, false, true, 5, kOneAnswer, odd_sum_sample},
      {"sum", "sum all digits modulo 5: needs no order", true, false, true, 5, kOneAnswer, sum_sample},
      {"add", "add two numbers, least significant digit first", true, false, true, 11,
       [](std::int64_t n) { return 3 * n + 4; }, add_least_sample},
      {"add-most", "add two numbers, most significant digit first", true, false, true, 11,
       [](std::int64_t n) { return 3 * n + 4; }, add_most_sample},
      {"missing-duplicate", "name the hidden symbol of a repeated string", true, false, true, 2,
       [](std::int64_t n) { return 2 * n + 3; }, missing_duplicate_sample},
      {"even-pairs", "say whether the first and last symbol agree", true, false, true, 2, kOneAnswer,
       even_pairs_sample},
      {"parity", "say whether a symbol occurs an even number of times", true, false, true, 2, kOneAnswer,
       parity_sample},
      {"order", "say which of two symbols comes first (an encoder)", false, false, true, 8,
       [](std::int64_t n) { return std::max<std::int64_t>(n, 2) + 1; }, order_sample},
  };
  return all;
}

const Task& task_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Task& task : tasks()) {
    if (task.name == name) return task;
    names.push_back(task.name);
  }
  raise(fmt::format("lab: unknown task '{}' ({})", name, suggestion(name, names)));
}

std::int64_t vocabulary_of(const Task& task, const Text& text) {
  return task.uses_text ? static_cast<std::int64_t>(text.alphabet.size()) + 1 : kFirstSymbol + task.symbols;
}

Batch make_batch(const Task& task, const Text& text, const BatchRequest& request) {
  const Purpose purpose = request.is_training ? Purpose::kTraining : Purpose::kEvaluation;
  std::vector<Sample> samples;
  Batch batch;
  batch.count = request.count;
  for (std::int64_t i = 0; i < request.count; ++i) {
    const std::int64_t index = request.first + i;
    Stream random(request.seed, purpose, request.step, index);
    if (task.uses_text) {
      samples.push_back(text_sample(task, text, request, random, index));
    } else {
      const std::int64_t size = request.is_training ? 1 + random.below(request.size) : request.size;
      samples.push_back(task.make(task, random, size));
    }
    batch.length = std::max(batch.length, static_cast<std::int64_t>(samples.back().tokens.size()));
  }
  bool is_padded = false;
  for (Sample& sample : samples) {
    batch.lengths.push_back(static_cast<std::int64_t>(sample.tokens.size()));
    is_padded = is_padded || batch.lengths.back() < batch.length;
    sample.tokens.resize(batch.length, kEnd);
    sample.targets.resize(batch.length, -1);
    batch.tokens.insert(batch.tokens.end(), sample.tokens.begin(), sample.tokens.end());
    batch.targets.insert(batch.targets.end(), sample.targets.begin(), sample.targets.end());
  }
  // Behind a causal mask, padding is never attended to.
  if (!is_padded || task.causal) batch.lengths.clear();
  if (request.random_positions > 0) {
    batch.positions.resize(batch.count * batch.length);
    for (std::int64_t i = 0; i < batch.count; ++i) {
      Stream random(request.seed, Purpose::kPositions, 2 * request.step + (request.is_training ? 0 : 1),
                    request.first + i);
      draw_positions(random, batch.length, request.random_positions, batch.positions.data() + i * batch.length);
    }
  }
  return batch;
}

}  // namespace posenc::lab
