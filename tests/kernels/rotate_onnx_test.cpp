// The node tests of ONNX's RotaryEmbedding (oracle/data/onnx/README.md): explicit tables of random numbers, of three
// and four axes, partial, in both layouts.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "backends.h"
#include "posenc/files.h"
#include "posenc/posenc.h"

namespace posenc::rotate_onnx_test {
namespace {

struct NodeTest {
  const char* name;
  std::int64_t rotary_dims;
  PairLayout layout = PairLayout::kHalves;
  bool has_ids = true;
  std::int64_t heads = 0;  // of an input without an axis for them
};

constexpr NodeTest kNodeTests[] = {
    {"test_rotary_embedding", 8},
    {"test_rotary_embedding_3d_input", 8, PairLayout::kHalves, true, 4},
    {"test_rotary_embedding_interleaved", 8, PairLayout::kInterleaved},
    {"test_rotary_embedding_no_position_ids", 8, PairLayout::kHalves, false},
    {"test_rotary_embedding_no_position_ids_interleaved", 8, PairLayout::kInterleaved, false},
    {"test_rotary_embedding_no_position_ids_rotary_dim", 4, PairLayout::kHalves, false},
    {"test_rotary_embedding_with_interleaved_rotary_dim", 4, PairLayout::kInterleaved},
    {"test_rotary_embedding_with_rotary_dim", 4},
};

NpyArray load(const NodeTest& test, const std::string& part) {
  std::ifstream file(std::string(POSENC_TEST_DATA) + "/onnx/" + test.name + "-" + part + ".npy", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  return read_npy(std::as_bytes(std::span(bytes)));
}

TEST(RotateOnnx, EveryNodeTestIsMetWithinOneMillionth) {
  for (const NodeTest& test : kNodeTests) {
    SCOPED_TRACE(test.name);
    const NpyArray cosines = load(test, "cos_cache"), sines = load(test, "sin_cache"),
                   want = load(test, "expected_output");
    ASSERT_EQ(cosines.shape.back(0), test.rotary_dims / 2);
    const Rotation form{.layout = test.layout, .source = RotationTable{cosines.view(), sines.view()}};
    std::vector<std::int64_t> ids;
    if (test.has_ids) {
      const NpyArray positions = load(test, "position_ids");
      const auto* first = reinterpret_cast<const std::int64_t*>(positions.bytes.data());
      ids.assign(first, first + count_of(positions.shape));
    }
    tests::for_each_engine([&] {
      NpyArray x = load(test, "input");
      TensorView tensor(x.bytes.data(), x.type, x.shape);
      if (test.heads > 0) {  // [batch, sequence, heads · features]
        const std::int64_t features = x.shape[2] / test.heads;
        tensor = swap_axes(TensorView(x.bytes.data(), x.type, {x.shape[0], x.shape[1], test.heads, features}), 1, 2);
      }
      rotate(tensor, {.ids = ids}, form);
      const auto* got = reinterpret_cast<const float*>(x.bytes.data());
      const auto* expected = reinterpret_cast<const float*>(want.bytes.data());
      for (std::int64_t i = 0; i < count_of(want.shape); ++i) ASSERT_NEAR(got[i], expected[i], 1e-6f) << i;
    });
  }
}

}  // namespace
}  // namespace posenc::rotate_onnx_test
