// Every configuration class of transformers: what its own rotary code computes for it (classes.json), and that every
// model_type has an answer.

#include "models/classes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "models/families.h"
#include "posenc/error.h"
#include "posenc/model.h"

namespace posenc::classes_test {
namespace {

using models::class_of;
using models::class_types;

Json data(const std::string& name) {
  std::ifstream file(std::string(POSENC_TEST_DATA) + "/" + name, std::ios::binary);
  return parse_json(std::string{std::istreambuf_iterator<char>(file), {}});
}

double number(const Json& json) {
  const auto* const whole = json.as<std::int64_t>();
  return whole != nullptr ? static_cast<double>(*whole) : *json.as<double>();
}

// f full, s sliding, l linear, c chunked
char letter_of(const std::string& type) {
  if (type == "full_attention") return 'f';
  if (type == "sliding_attention") return 's';
  if (type == "chunked_attention") return 'c';
  return type == "linear_attention" || type == "conv" ? 'l' : '?';
}

// The row that holds for a layer: the only one, or that of its type.
const Json* row_of(const Json& ropes, const std::string& type) {
  if (const Json* const all = ropes.find("*")) return all;
  if (const Json* const own = ropes.find(type)) return own;
  return ropes.find(type == "sliding_attention" ? "main" : "compress");
}

void expect_like(const LayerGroup& group, const Model& model, const Json& row) {
  const auto& wanted = *row.as<Json::Array>();
  const Rotation form = prepare(std::get<Rope>(*group.scheme), {.length = model.trained_length.value_or(1)});
  const std::size_t count = form.frequencies.size();
  ASSERT_EQ(static_cast<double>(count), number(wanted[0]));
  const std::size_t places[] = {0, count / 3, count / 2, count - 1};
  for (std::size_t i = 0; i < std::size(places); ++i) {
    const double expected = number(wanted[i + 1]), got = radians_of(form.frequencies[places[i]]);
    EXPECT_LE(std::fabs(got - expected), 2e-5 * expected) << "pair " << places[i];
  }
  EXPECT_NEAR(form.magnitude, number(wanted[5]), 1e-5);
}

TEST(Classes, HaveTheFrequenciesOfTransformers) {
  const Json cases = data("configs/classes.json");
  std::size_t compared = 0;
  EXPECT_GE(cases.as<Json::Array>()->size(), 400u);
  for (const Json& one : *cases.as<Json::Array>()) {
    const std::string config = dump_json(*one.find("config"));
    SCOPED_TRACE(config);
    const Model model = read_model(config);
    const Json* const types = one.find("layer_types");
    for (const LayerGroup& group : model.groups) {
      const bool is_rope = group.scheme && std::holds_alternative<Rope>(*group.scheme);
      for (const std::int64_t layer : group.layers) {
        const std::string* const letters = types == nullptr ? nullptr : types->as<std::string>();
        if (letters == nullptr || group.layer_type.empty()) break;
        const char wanted = letters->at(static_cast<std::size_t>(layer));
        EXPECT_TRUE(wanted == '?' || wanted == letter_of(group.layer_type)) << "layer " << layer << " " << wanted;
      }
      const Json* const row = is_rope ? row_of(*one.find("ropes"), group.layer_type) : nullptr;
      if (row == nullptr) continue;
      expect_like(group, model, *row);
      ++compared;
    }
  }
  EXPECT_GE(compared, 400u);
}

TEST(Classes, EveryModelTypeAnswersOrSaysWhichPartsItLacks) {
  std::size_t answered = 0;
  for (const std::string_view type : class_types()) {
    try {
      const Model model = read_model(fmt::format(R"({{"model_type":"{}"}})", type));
      ASSERT_FALSE(model.groups.empty()) << type;
      for (const LayerGroup& group : model.groups) {
        EXPECT_NE(group.scheme.has_value(), !group.formula.empty()) << type << " " << group.scheme_name;
      }
      ++answered;
    } catch (const Error& error) {
      const std::string text = error.what();
      const bool is_sized_by_the_file =
          class_of(type)->defaults == "{}" || text.find("is missing") != std::string::npos;
      EXPECT_TRUE(text.find("is made of parts") != std::string::npos || is_sized_by_the_file) << type << ": " << text;
    }
  }
  EXPECT_GE(answered, 690u);
}

// The configs of a file and of their parts, by type.
void collect(const Json& json, std::vector<std::pair<std::string, const Json*>>& found) {
  const auto* const members = json.as<Json::Object>();
  if (members == nullptr) return;
  const Json* type = json.find("model_type");
  if (type == nullptr) type = json.find("_class_name");
  if (type != nullptr && type->as<std::string>() != nullptr) found.emplace_back(*type->as<std::string>(), &json);
  for (const auto& [key, value] : *members) collect(value, found);
}

// Every row of the tables of families has a config whose answer is known.
TEST(Classes, EveryRowOfTheFamiliesHasATruth) {
  std::vector<std::pair<std::string, const Json*>> configs;
  const Json files[] = {data("configs/families.json"), data("configs/classes.json"), data("configs/kinds.json")};
  for (const Json& file : files) {
    for (const Json& one : *file.as<Json::Array>()) collect(*one.find("config"), configs);
  }
  std::size_t rows = 0;
  for (const auto& table : {models::rope_families(), models::hybrid_families(), models::added_families(),
                            models::bias_families(), models::vision_families(), models::audio_families()}) {
    for (const models::Family& family : table) {
      if (family.types.starts_with('=')) continue;  // a class of parts alone
      ++rows;
      const bool has_truth = std::any_of(configs.begin(), configs.end(), [&](const auto& one) {
        if (!models::has_word(family.types, one.first)) return false;
        const models::ConfigClass* const row = class_of(one.first);
        const Json defaults = parse_json(row == nullptr ? "{}" : row->defaults);
        return models::holds({.object = one.second, .defaults = &defaults}, family.when);
      });
      EXPECT_TRUE(has_truth) << family.types << " " << family.when;
    }
  }
  EXPECT_GE(rows, 250u);
}

TEST(Classes, DefaultsAreJsonAndTypesAreUnique) {
  std::vector<std::string_view> seen;
  for (const std::string_view type : class_types()) {
    EXPECT_EQ(std::count(seen.begin(), seen.end(), type), 0) << type;
    seen.push_back(type);
    EXPECT_NE(parse_json(class_of(type)->defaults).as<Json::Object>(), nullptr) << type;
  }
  EXPECT_EQ(class_of("frobnicator9000"), nullptr);
}

// What a model states without having read it must be said.
TEST(Classes, WhatTheFileOmitsIsAssumedAndSaysSo) {
  const auto assumes = [](const char* config, const char* text) {
    const Model model = read_model(config);
    return std::find(model.assumed.begin(), model.assumed.end(), text) != model.assumed.end();
  };
  EXPECT_TRUE(
      assumes(R"({"model_type":"gemma","num_hidden_layers":1})", "head_dim = 256 (the family's default; not given)"));
  EXPECT_FALSE(assumes(R"({"model_type":"gemma","num_hidden_layers":1,"head_dim":256})",
                       "head_dim = 256 (the family's default; not given)"));
  EXPECT_TRUE(assumes(R"({"model_type":"swin"})", "window_size = 7 (the family's default; not given)"));
  EXPECT_TRUE(assumes(R"({"model_type":"wav2vec2-bert"})",
                      "right_max_position_embeddings = 8 (the family's default; not given)"));
  EXPECT_TRUE(assumes(R"({"model_type":"llava"})", "text_config = llama (the family's default; not given)"));
  // null is a value: no window, not the default one
  const Model model = read_model(R"({"model_type":"mistral","num_hidden_layers":1,"sliding_window":null})");
  EXPECT_EQ(model.groups[0].window, std::nullopt);
  EXPECT_EQ(read_model(R"({"model_type":"mistral","num_hidden_layers":1})").groups[0].window, 4096);
}

TEST(Classes, AllPartsOfAModelAreShown) {
  const Model clip = read_model(R"({"model_type":"clip"})");
  ASSERT_EQ(clip.parts.size(), 1u);
  EXPECT_EQ(clip.groups[0].scheme, Scheme(Learned{.rows = 77, .width = 512}));
  EXPECT_EQ(clip.parts[0].name, "vision");
  EXPECT_EQ(clip.parts[0].groups[0].scheme, Scheme(Learned{.rows = 50, .width = 768}));
  EXPECT_EQ(clip.groups[0].is_causal, true);
  EXPECT_EQ(clip.parts[0].groups[0].is_causal, false);

  const Model omni = read_model(R"({"model_type":"qwen2_5_omni"})");
  std::vector<std::string> names;
  for (const ModelPart& part : omni.parts) names.push_back(part.name);
  EXPECT_EQ(std::count(names.begin(), names.end(), "thinker vision"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "thinker audio"), 1);

  const Model qwen = read_model(R"({"model_type":"qwen2_vl"})");
  ASSERT_EQ(qwen.parts.size(), 1u);
  const Rope& vision = std::get<Rope>(*qwen.parts[0].groups[0].scheme);
  EXPECT_EQ(vision.section_order, SectionOrder::kRestarting);
}

// Parts that a class makes if the file has none, with the class's own values: transformers 5.16 (d56c55bf),
// configuration_{mistral3,pp_formulanet,sam3,edgetam,pe_audio_video}.py.
TEST(Classes, PartsAreThoseThatTheClassMakes) {
  // null in the code: Mistral 3's text has no window, where Mistral's class has one
  EXPECT_EQ(read_model(R"({"model_type":"mistral3"})").groups[0].window, std::nullopt);
  const Model formula = read_model(R"({"model_type":"pp_formulanet"})");
  EXPECT_EQ(formula.groups[0].scheme, Scheme(Learned{.rows = 2562, .width = 512, .offset = 2}));
  ASSERT_EQ(formula.parts.size(), 1u);
  EXPECT_EQ(formula.parts[0].name, "vision");
  const auto has = [](const char* type, std::string_view part) {
    const Model model = read_model(fmt::format(R"({{"model_type":"{}"}})", type));
    return std::any_of(model.parts.begin(), model.parts.end(),
                       [&](const ModelPart& one) { return one.name == part; });
  };
  EXPECT_TRUE(has("sam3", "geometry_encoder"));
  EXPECT_TRUE(has("sam3", "detr_decoder"));
  EXPECT_TRUE(has("edgetam", "mask_decoder"));
  EXPECT_TRUE(has("pe_audio_video_encoder", "video"));
}

// BLT has four transformers and no layers of its own.
TEST(Classes, BltIsItsParts) {
  const Model blt = read_model(R"({"model_type":"blt"})");
  EXPECT_EQ(blt.groups[0].scheme, Scheme(Rope{.dims = 64, .base = 500000, .layout = PairLayout::kInterleaved}));
  ASSERT_EQ(blt.parts.size(), 3u);
  EXPECT_EQ(blt.parts[0].groups[0].scheme,
            Scheme(Rope{.dims = 64, .base = 10000, .layout = PairLayout::kInterleaved}));
}

TEST(Classes, LayersThatDifferNeverShareAGroup) {
  const Model gemma = read_model(R"({"model_type":"gemma2","num_hidden_layers":4})");
  ASSERT_EQ(gemma.groups.size(), 2u);
  EXPECT_EQ(gemma.groups[0].window, 4096);
  EXPECT_EQ(gemma.groups[1].window, std::nullopt);
  EXPECT_EQ(gemma.groups[0].scheme, gemma.groups[1].scheme);
  EXPECT_EQ(gemma.groups[0].softcap, 50);
  EXPECT_EQ(gemma.groups[0].scale, 1.0 / 16);

  const Model llama4 = read_model(R"({"model_type":"llama4_text","num_hidden_layers":4})");
  ASSERT_EQ(llama4.groups.size(), 2u);
  EXPECT_EQ(llama4.groups[0].chunk, 8192);
  EXPECT_EQ(llama4.groups[0].temperature, std::nullopt);
  EXPECT_EQ(llama4.groups[1].temperature, (Temperature{.scale = 0.1, .length = 8192, .shift = 1}));
  EXPECT_TRUE(read_model(R"({"model_type":"gpt_oss"})").groups[0].has_sinks);
  EXPECT_EQ(read_model(R"({"model_type":"ministral3"})").groups[0].temperature,
            (Temperature{.scale = 0.1, .length = 16384, .shift = 0}));
}

// Counted from the last layer, whether or not the file lists bases: transformers 5.16 (d56c55bf), configuration_muse_glimmer.py.
TEST(Classes, MuseGlimmersFullLayersAreCountedFromTheLast) {
  const Model model = read_model(R"({"model_type":"muse_glimmer_text","num_hidden_layers":6,
      "layer_rope_theta":[10000,0,10000,10000,10000,0]})");
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(model.groups[0].layers, (std::vector<std::int64_t>{0, 2, 3, 4}));
  EXPECT_EQ(model.groups[0].layer_type, "sliding_attention");
  EXPECT_EQ(model.groups[1].layers, (std::vector<std::int64_t>{1, 5}));
  EXPECT_EQ(model.groups[1].layer_type, "full_attention");
}

// transformers 5.16 (d56c55bf), configuration_inkling.py: local_layer_ids slide.
TEST(Classes, InklingListsTheLayersThatSlide) {
  const Model model = read_model(R"({"model_type":"inkling_text","num_hidden_layers":4,"local_layer_ids":[0,2,3]})");
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(model.groups[0].layers, (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(model.groups[0].layer_type, "hybrid_sliding");
  EXPECT_EQ(model.groups[1].layer_type, "hybrid");
}

TEST(Classes, TablesOfAnIndex) {
  const auto tables = position_tables(R"({"weight_map":{"transformer.wpe.weight":"a.safetensors",
      "transformer.wte.weight":"a.safetensors","vit.embeddings.position_embeddings":"b.safetensors"}})");
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].name, "transformer.wpe.weight");
  EXPECT_EQ(tables[1].file, "b.safetensors");
  EXPECT_FALSE(is_position_table("swpe.weight"));
  EXPECT_THROW(position_tables("{}"), Error);

  Model model = read_model(R"({"model_type":"gpt2"})");
  const PositionTable right{"wpe.weight", "a", {1024, 768}}, wrong{"wpe.weight", "a", {2048, 768}};
  check_tables(model, std::span(&right, 1));
  EXPECT_TRUE(model.warnings.empty());
  check_tables(model, std::span(&wrong, 1));
  ASSERT_EQ(model.warnings.size(), 1u);
  EXPECT_EQ(model.warnings[0], "wpe.weight is 2048 x 768 but the config says 1024 x 768");
}

}  // namespace
}  // namespace posenc::classes_test
