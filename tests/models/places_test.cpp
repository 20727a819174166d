// Families with a query temperature, a resized table, or patches with coordinates from −1 to 1.

#include <gtest/gtest.h>

#include <algorithm>

#include "posenc/posenc.h"

namespace posenc::places_test {
namespace {

bool says(const Model& model, std::string_view text) {
  return std::any_of(model.notes.begin(), model.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

// transformers 5.16 (d56c55bf), modeling_inkling.py: layers that do not slide, where log_scaling_n_floor is given.
TEST(Places, InklingScalesQueriesByTheLogarithm) {
  const Model model = read_model(
      R"({"model_type":"inkling_text","num_hidden_layers":6,"log_scaling_n_floor":4096,"log_scaling_alpha":0.2})");
  int with = 0;
  for (const LayerGroup& group : model.groups) {
    const bool is_sliding = group.layer_type.find("sliding") != std::string::npos;
    EXPECT_EQ(group.temperature.has_value(), !is_sliding) << group.layer_type;
    if (!group.temperature) continue;
    ++with;
    EXPECT_EQ(*group.temperature,
              (Temperature{.scale = 0.2, .length = 4096, .shift = 1, .rule = TemperatureRule::kLog}));
  }
  EXPECT_EQ(with, 1);
  for (const LayerGroup& group : read_model(R"({"model_type":"inkling_text"})").groups) {
    EXPECT_FALSE(group.temperature.has_value());
  }
}

TEST(Places, TablesThatAreResized) {
  constexpr std::string_view kBefore = "for another grid of patches the table is resized: scheme resized, ";
  const auto note = [&](std::string_view rest) { return std::string(kBefore) + std::string(rest); };
  EXPECT_TRUE(says(read_model(R"({"model_type":"vit","image_size":224,"patch_size":16})"),
                   note("trained_grid 14,14, filter bicubic, prefix 1")));
  EXPECT_TRUE(says(read_model(R"({"model_type":"dinov2","image_size":518,"patch_size":14})"),
                   note("trained_grid 37,37, filter bicubic, prefix 1")));
  EXPECT_TRUE(says(read_model(R"({"model_type":"dinov2_with_registers","image_size":518,"patch_size":14})"),
                   note("trained_grid 37,37, filter bicubic, antialias, prefix 1")));
  EXPECT_TRUE(says(read_model(R"({"model_type":"siglip_vision_model","image_size":224,"patch_size":16})"),
                   note("trained_grid 14,14, filter bicubic, prefix 0")));
  EXPECT_TRUE(says(read_model(R"({"model_type":"qwen3_vl","vision_config":{"model_type":"qwen3_vl_vision"}})"),
                   note("trained_grid 48,48, filter bilinear, corners, prefix 0")));
  EXPECT_TRUE(says(read_model(R"({"model_type":"siglip2_vision_model"})"), "filter bilinear, antialias"));
  EXPECT_FALSE(says(read_model(R"({"model_type":"vitpose_backbone"})"), "resized"));
}

// From config to attention: the layer is ready, and its ids are those of centred_positions.
TEST(Places, DinoV3FromConfigToAttention) {
  const Model model = read_model(
      R"({"model_type":"dinov3_vit","hidden_size":32,"num_attention_heads":2,"image_size":64,"patch_size":16})");
  const PreparedLayer made = layer(model, 0);
  const std::vector<std::int64_t> extents = {4, 4};
  const std::vector<std::int64_t> ids = centred_positions(extents);
  AttentionOptions options = made.attention;
  options.query_positions = options.key_positions = Positions{.ids = ids, .axes = 2};
  std::vector<float> x(2 * 16 * 16, 0.5f), out(x.size());
  attention(view(out.data(), {2, 16, 16}), view(std::as_const(x).data(), {2, 16, 16}),
            view(std::as_const(x).data(), {2, 16, 16}), view(std::as_const(x).data(), {2, 16, 16}), options);
  for (const float value : out) EXPECT_NEAR(value, 0.5f, 1e-6f);
}

}  // namespace
}  // namespace posenc::places_test
