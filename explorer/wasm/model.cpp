// A model that the lab trained, on a text of the page's: the loss of every byte, where a head looks, what comes next.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "explorer/wasm/call.h"
#include "lab/blas.h"
#include "lab/packed.h"
#include "lab/philox.h"
#include "posenc/error.h"

namespace posenc::page {
namespace {

using namespace lab;

constexpr std::int64_t kLongest = 1024, kMostWritten = 256, kChoices = 5;

struct Symbols {
  std::vector<std::int32_t> tokens;
  std::int64_t replaced = 0;
};

// Bytes that the model has never seen are blanks.
Symbols symbols_of(const std::string& text, const std::string& alphabet) {
  const std::size_t blank = alphabet.find(' ');
  Symbols symbols;
  for (const char byte : text) {
    std::size_t at = alphabet.find(byte);
    if (at == std::string::npos) {
      at = blank == std::string::npos ? 0 : blank;
      ++symbols.replaced;
    }
    symbols.tokens.push_back(static_cast<std::int32_t>(at));
  }
  return symbols;
}

struct Passed {
  Position position;
  Batch batch;
  Activations<float> memory;
};

Passed pass(const Network<float>& network, std::vector<std::int32_t> tokens) {
  Passed passed;
  passed.batch.count = 1;
  passed.batch.length = std::ssize(tokens);
  passed.batch.tokens = std::move(tokens);
  passed.position = prepare_position(network.shape, network.layout, network.parameters.data(), passed.batch.length);
  forward(network, passed.position, passed.batch, passed.memory);
  return passed;
}

// softmax of a row of logits
std::vector<double> chances(const Network<float>& network, const Passed& passed, std::int64_t row) {
  const std::int64_t count = network.shape.vocabulary;
  const float* const logits = passed.memory.logits.data() + row * count;
  const double largest = *std::max_element(logits, logits + count);
  std::vector<double> values(count);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += values[i] = std::exp(static_cast<double>(logits[i]) - largest);
  for (double& value : values) value /= sum;
  return values;
}

Json likeliest(const std::vector<double>& values, const std::string& alphabet) {
  std::vector<std::int64_t> order(alphabet.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
  const auto most = std::min<std::size_t>(kChoices, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                    [&](std::int64_t a, std::int64_t b) { return values[a] > values[b]; });
  Json::Array list;
  for (std::size_t i = 0; i < most; ++i) {
    list.push_back(Json::Object{{"byte", std::int64_t{static_cast<unsigned char>(alphabet[order[i]])}},
                                {"chance", values[order[i]]}});
  }
  return list;
}

PackedModel asked_model(const Question& question) { return unpack(question.bytes); }

// Means of squares of a matrix of `length` rows, at most `cells` across; the last ones may be smaller.
std::vector<double> coarse(const float* weights, std::int64_t length, std::int64_t cells) {
  const std::int64_t each = (length + cells - 1) / cells, count = (length + each - 1) / each;
  std::vector<double> means;
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t column = 0; column < count; ++column) {
      double sum = 0, number = 0;
      for (std::int64_t i = row * each; i < std::min(length, (row + 1) * each); ++i) {
        for (std::int64_t j = column * each; j < std::min(length, (column + 1) * each); ++j, ++number) {
          sum += static_cast<double>(weights[i * length + j]);
        }
      }
      means.push_back(sum / number);
    }
  }
  return means;
}

// {text, layer, head, cells}: the loss of each byte but the first, then the weights of the head, [bytes, bytes], or their
// means in squares, at most `cells` across.
Answer model_run(const Question& question) {
  const PackedModel model = asked_model(question);
  const Shape& shape = model.network.shape;
  const Symbols symbols = symbols_of(text(question.fields, "text"), model.alphabet);
  const auto length = std::ssize(symbols.tokens);
  if (length < 2 || length > kLongest) raise("the text must have 2 to 1,024 characters");
  const std::int64_t layer = integer(question.fields, "layer", 0), head = integer(question.fields, "head", 0);
  const std::int64_t cells = std::max<std::int64_t>(1, integer(question.fields, "cells", kLongest));
  if (layer < 0 || layer >= shape.layers || head < 0 || head >= shape.heads) raise("no such layer or head");
  Passed passed = pass(model.network, symbols.tokens);
  const std::vector<double> next = chances(model.network, passed, length - 1);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i + 1 < length; ++i) {
    numbers.push_back(-std::log(chances(model.network, passed, i)[symbols.tokens[i + 1]]));
  }
  const std::vector<float> weights =
      attention_weights(model.network, passed.position, passed.batch, passed.memory, layer);
  const std::vector<double> map = coarse(weights.data() + head * length * length, length, cells);
  numbers.insert(numbers.end(), map.begin(), map.end());
  Answer answer;
  answer.json = Json::Object{{"length", std::int64_t{length}},
                             {"replaced", symbols.replaced},
                             {"each", (length + cells - 1) / cells},
                             {"context", shape.context},
                             {"next", likeliest(next, model.alphabet)}};
  answer.bytes.resize(numbers.size() * sizeof(double));
  std::memcpy(answer.bytes.data(), numbers.data(), answer.bytes.size());
  return answer;
}

// {text, count, seed}: what the model writes after a text, a byte at a time.
Answer model_write(const Question& question) {
  const PackedModel model = asked_model(question);
  std::vector<std::int32_t> tokens = symbols_of(text(question.fields, "text"), model.alphabet).tokens;
  const std::int64_t count = integer(question.fields, "count", 64);
  if (count < 1 || count > kMostWritten) raise("count must be 1 to 256");
  if (tokens.empty() || std::ssize(tokens) + count > kLongest) raise("the text must have 1 to 1,024 characters");
  std::string written;
  for (std::int64_t i = 0; i < count; ++i) {
    const Passed passed = pass(model.network, tokens);
    const std::vector<double> next = chances(model.network, passed, std::ssize(tokens) - 1);
    Stream random(static_cast<std::uint64_t>(integer(question.fields, "seed", 1)), Purpose::kEvaluation, 0, i);
    double left = random.uniform();
    std::size_t at = 0;
    while (at + 1 < model.alphabet.size() && left > next[at]) left -= next[at++];
    tokens.push_back(static_cast<std::int32_t>(at));
    written.push_back(model.alphabet[at]);
  }
  return {Json::Object{{"written", written}}, {}};
}

// A matrix of the model as doubles, row by row: a table of positions, say.
Answer model_tensor(const Question& question) {
  const PackedModel model = asked_model(question);
  const Slice& slice = model.network.layout[text(question.fields, "name")];
  if (slice.shape.rank != 2) raise("has no rows");
  const auto from = model.network.parameters.begin() + slice.offset;
  const std::vector<double> numbers(from, from + slice.count);
  Answer answer;
  answer.json = Json::Object{{"rows", slice.shape[0]}, {"columns", slice.shape[1]}};
  answer.bytes.resize(numbers.size() * sizeof(double));
  std::memcpy(answer.bytes.data(), numbers.data(), answer.bytes.size());
  return answer;
}

}  // namespace

std::span<const NamedCall> calls() {
  static constexpr NamedCall kCalls[] = {
      {"model-run", model_run}, {"model-write", model_write}, {"model-tensor", model_tensor}};
  return kCalls;
}

}  // namespace posenc::page

namespace posenc::lab {

// A page has no BLAS: products are plain loops.
const Blas& blas() {
  static const Blas none;
  return none;
}

}  // namespace posenc::lab
