#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "posenc/error.h"
#include "posenc/json.h"
#include "posenc/mrope.h"

namespace posenc::mixed_input_test {
namespace {

using Ids = std::vector<std::int64_t>;

// What get_rope_index of transformers 5.16 (d56c55bf) returned for these prompts, run once with torch 1.13: text with an
// image and a video, frames with timestamps, audio, and a video whose sound takes turns with it.
TEST(MixedInput, PromptsOfEveryFamily) {
  std::ifstream file(std::string(POSENC_TEST_DATA) + "/mixed_input.json", std::ios::binary);
  const Json cases = parse_json(std::string{std::istreambuf_iterator<char>(file), {}});
  ASSERT_EQ(cases.as<Json::Array>()->size(), 9u);
  for (const Json& one : *cases.as<Json::Array>()) {
    const std::string &name = *one.find("family")->as<std::string>(), &spec = *one.find("spec")->as<std::string>();
    const MropeFamily& family = mrope_family(name);
    const MropePositions made = mrope_positions(mrope_pieces(spec, family), {.advance = family.advance});
    Ids expected;
    for (const Json& axis : *one.find("ids")->as<Json::Array>()) {
      for (const Json& id : *axis.as<Json::Array>()) expected.push_back(*id.as<std::int64_t>());
    }
    EXPECT_EQ(made.ids, expected) << name << ": " << spec;
    EXPECT_EQ(made.next, *one.find("next")->as<std::int64_t>()) << name << ": " << spec;
  }
}

TEST(MixedInput, SaysWhatIsWrong) {
  const auto refusal = [](std::string_view family, std::string_view text) -> std::string {
    try {
      mrope_pieces(text, mrope_family(family));
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal("qwen2-vl", " text:1  image:2x4 "), "accepted");
  EXPECT_EQ(refusal("qwen9", "text:1"),
            "mrope: family 'qwen9' is unknown (known are qwen2-vl, qwen2.5-vl, qwen3-vl, glm4v, qwen2.5-omni)");
  EXPECT_EQ(refusal("qwen2-vl", " "), "mrope: the sequence is empty; give pieces, e.g. text:5 image:16x24");
  EXPECT_EQ(refusal("qwen2-vl", "txt:1"), "mrope: 'txt:1' must be text:N, image:RxC, video:TxRxC or audio:N");
  EXPECT_EQ(refusal("qwen2-vl", "text:0"), "mrope: 'text:0' has '0', where an integer above 0 is expected");
  EXPECT_EQ(refusal("qwen2-vl", "text"), "mrope: 'text' has nothing, where an integer above 0 is expected");
  EXPECT_EQ(refusal("qwen2-vl", "image:2x2x2"), "mrope: 'image:2x2x2' must have the form image:ROWSxCOLUMNS");
  EXPECT_EQ(refusal("qwen2-vl", "video:1x2x2@1"), "mrope: 'video:1x2x2@1' has seconds, but qwen2-vl counts frames");
  EXPECT_EQ(refusal("qwen2.5-vl", "video:1x2x2"),
            "mrope: 'video:1x2x2' needs @SECONDS of a frame: qwen2.5-vl counts time");
  EXPECT_EQ(refusal("qwen2.5-vl", "video:1x2x2@nan"),
            "mrope: 'video:1x2x2@nan' has 'nan', where a number of seconds above 0 is expected");
  EXPECT_EQ(refusal("qwen2.5-vl", "video:1x2x2@1+5"),
            "mrope: 'video:1x2x2@1+5' has sound, which qwen2.5-vl does not mix in");
  EXPECT_EQ(refusal("glm4v", "video:2x2x2"),
            "mrope: 'video:2x2x2' has several frames, but glm4v writes a timestamp before each: give text:N "
            "video:1xRxC for each");
}

}  // namespace
}  // namespace posenc::mixed_input_test
