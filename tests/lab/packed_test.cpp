// A model in a byte per weight: what it keeps, what it loses, and files that are none.

#include "lab/packed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lab/train.h"
#include "posenc/error.h"

namespace posenc::packed_test {
namespace {

using namespace lab;

std::span<const std::byte> bytes_of(const std::string& file) {
  return {reinterpret_cast<const std::byte*>(file.data()), file.size()};
}

PackedModel model_of(const std::string& scheme) {
  PackedModel model;
  Shape& shape = model.network.shape;
  shape.scheme = scheme;
  shape.width = 16;
  shape.heads = 2;
  shape.vocabulary = 5;
  shape.context = 8;
  shape.longest = 24;
  model.network.layout = layout_of(shape);
  model.network.parameters = initial_parameters<float>(model.network.layout, 7);
  model.alphabet = std::string("\n a\xff", 4);
  model.text = "four bytes";
  return model;
}

TEST(Packed, KeepsEachWeightToHalfAStepOfItsRow) {
  for (const std::string scheme : {"none", "learned", "sinusoidal", "rope", "alibi", "t5", "kerple", "fire"}) {
    const PackedModel model = model_of(scheme);
    const PackedModel read = unpack(bytes_of(pack(model)));
    EXPECT_EQ(read.network.shape, model.network.shape);
    EXPECT_EQ(read.alphabet, model.alphabet);
    EXPECT_EQ(read.text, model.text);
    bool differs = false;
    for (const Slice& slice : model.network.layout.slices) {
      const std::int64_t columns = slice.shape.rank == 2 ? slice.shape[1] : 1;
      for (std::int64_t row = 0; row < slice.count / columns; ++row) {
        const float* const want = model.network.parameters.data() + slice.offset + row * columns;
        const float* const have = read.network.parameters.data() + slice.offset + row * columns;
        float largest = 0;
        for (std::int64_t j = 0; j < columns; ++j) largest = std::max(largest, std::fabs(want[j]));
        const float bound = slice.shape.rank == 2 ? largest / 254 * 1.0001f : 0;
        for (std::int64_t j = 0; j < columns; ++j) {
          EXPECT_LE(std::fabs(have[j] - want[j]), bound) << scheme << ' ' << slice.name;
          differs = differs || have[j] != want[j];
        }
      }
    }
    EXPECT_TRUE(differs);  // a byte is not enough for every bit
  }
}

TEST(Packed, PredictsAsTheModelDoes) {
  const PackedModel model = model_of("rope"), read = unpack(bytes_of(pack(model)));
  const Batch batch = {.count = 1, .length = 6, .tokens = {0, 1, 2, 3, 2, 1}};
  const auto logits = [&](const Network<float>& network) {
    Activations<float> memory;
    forward(network, prepare_position(network.shape, network.layout, network.parameters.data(), batch.length), batch,
            memory);
    return memory.logits;
  };
  const std::vector<float> want = logits(model.network), have = logits(read.network);
  ASSERT_EQ(want.size(), have.size());
  float largest = 0;
  for (const float value : want) largest = std::max(largest, std::fabs(value));
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_LE(std::fabs(have[i] - want[i]), 0.03f * largest);
}

std::string complaint(const std::string& file) {
  try {
    unpack(bytes_of(file));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Packed, SaysWhatAFileLacks) {
  const PackedModel model = model_of("learned");
  const std::string good = pack(model);
  EXPECT_EQ(complaint(good), "");
  EXPECT_NE(complaint(""), "");
  EXPECT_NE(complaint(good.substr(0, good.size() - 1)), "");
  PackedModel other = model;
  other.alphabet = "abc";
  EXPECT_EQ(complaint(pack(other)), "lab: the alphabet must be a list of 4 bytes");
  other = model;
  other.network.layout.slices.erase(other.network.layout.slices.begin());
  EXPECT_EQ(complaint(pack(other)), "lab: the packed model has no tensor 'token.table'");
  other = model;
  other.network.layout.slices.front().shape = {4, 16};
  EXPECT_EQ(complaint(pack(other)), "lab: 'token.table' in the packed model must be I8 [5, 16] but is I8 [4, 16]");
  State state;
  state.network = model.network;
  state.first = state.second = model.network.parameters;
  Job job;
  job.shape = model.network.shape;
  EXPECT_EQ(complaint(checkpoint_of(state, job, Text())),
            "lab: the model's format is 'posenc-lab-1' but must be 'posenc-lab-packed-1'");
}

}  // namespace
}  // namespace posenc::packed_test
