#include "posenc/model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

#include "posenc/error.h"
#include "posenc/json.h"

namespace posenc::model_test {
namespace {

Json data(const std::string& name) {
  std::ifstream file(std::string(POSENC_TEST_DATA) + "/" + name, std::ios::binary);
  return parse_json(std::string{std::istreambuf_iterator<char>(file), {}});
}

std::string error_of(std::string_view config) {
  try {
    return fmt::format("accepted, {} groups", read_model(config).groups.size());
  } catch (const Error& error) {
    return error.what();
  }
}

std::string shown(const Model& model) {
  std::string text;
  for (const LayerGroup& group : model.groups) {
    text += fmt::format("{} {} {}\n", layer_ranges(group.layers), group.layer_type,
                        group.scheme ? to_json(*group.scheme) : group.scheme_name);
  }
  return text;
}

std::string text_of(const Json* json) {
  const auto* const text = json == nullptr ? nullptr : json->as<std::string>();
  return text == nullptr ? "" : *text;
}

std::optional<std::int64_t> integer_of(const Json* json) {
  const auto* const whole = json == nullptr ? nullptr : json->as<std::int64_t>();
  return whole == nullptr ? std::nullopt : std::optional(*whole);
}

TEST(Model, EveryGoldenConfigGivesItsSchemeInOldKeysAndNew) {
  std::map<std::string, Scheme> schemes;
  const Json goldens = data("goldens/rope.json");
  for (const Json& one : *goldens.as<Json::Array>()) {
    schemes[text_of(one.find("name"))] = scheme_from_json(dump_json(*one.find("scheme")));
  }
  const Json cases = data("configs/goldens.json");
  EXPECT_EQ(cases.as<Json::Array>()->size(), 16u);
  for (const Json& one : *cases.as<Json::Array>()) {
    const std::string name = text_of(one.find("name"));
    for (const std::string form : {"config", "before"}) {
      SCOPED_TRACE(name + " " + form);
      const Model model = read_model(dump_json(*one.find(form)));
      bool is_there = false;
      for (const LayerGroup& group : model.groups) {
        if (group.layer_type != text_of(one.find("layer_type"))) continue;
        is_there = true;
        EXPECT_EQ(group.scheme, schemes.at(name)) << to_json(*group.scheme) << '\n' << to_json(schemes.at(name));
      }
      EXPECT_TRUE(is_there) << shown(model);
    }
  }
}

void expect_families(const std::string& name, std::size_t at_least) {
  const Json cases = data(name);
  EXPECT_GE(cases.as<Json::Array>()->size(), at_least);
  for (const Json& one : *cases.as<Json::Array>()) {
    SCOPED_TRACE(text_of(one.find("name")));
    const Model model = read_model(dump_json(*one.find("config")));
    const auto& groups = *one.find("groups")->as<Json::Array>();
    ASSERT_EQ(model.groups.size(), groups.size()) << shown(model);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const LayerGroup& group = model.groups[i];
      EXPECT_EQ(layer_ranges(group.layers), text_of(groups[i].find("layers")));
      EXPECT_EQ(group.layer_type, text_of(groups[i].find("layer_type")));
      if (const Json* const scheme = groups[i].find("scheme")) {
        const Scheme wanted = scheme_from_json(dump_json(*scheme));
        EXPECT_EQ(group.scheme, wanted) << shown(model);
      } else {
        EXPECT_EQ(group.scheme_name, text_of(groups[i].find("scheme_name")));
      }
      if (const Json* const causal = groups[i].find("causal")) {
        const bool* const wanted = causal->as<bool>();  // null: the call of forward says so
        EXPECT_EQ(group.is_causal, wanted == nullptr ? std::nullopt : std::optional(*wanted));
      }
      if (const Json* const window = groups[i].find("window")) {
        EXPECT_EQ(group.window, integer_of(window));
      }
      if (const Json* const unscaled = groups[i].find("unscaled")) {
        EXPECT_EQ(group.is_unscaled, *unscaled->as<bool>());
      }
      if (const Json* const computed = groups[i].find("computed")) {
        EXPECT_EQ(group.other_attention.empty(), *computed->as<bool>()) << group.other_attention;
      }
      if (const Json* const mixer = groups[i].find("token_mixer")) {
        EXPECT_EQ(group.token_mixer, text_of(mixer));
      }
      EXPECT_EQ(group.first_position, integer_of(groups[i].find("first_position")).value_or(0));
      const Json* const factor = groups[i].find("softmax_factor");
      const auto* const rope = group.scheme ? std::get_if<Rope>(&*group.scheme) : nullptr;
      const double found = rope == nullptr ? 1.0 : prepare(*rope, {.length = 4096}).softmax_factor;
      EXPECT_NEAR(found, factor == nullptr ? 1.0 : *factor->as<double>(), 1e-12);
    }
    EXPECT_EQ(model.trained_length, integer_of(one.find("trained_length")));
    EXPECT_EQ(model.usable_length, integer_of(one.find("usable_length")));
    EXPECT_TRUE(model.warnings.empty()) << model.warnings.front();
  }
}

TEST(Model, EveryFamilyIsWhatItIs) { expect_families("configs/families.json", 90); }
TEST(Model, EveryOtherKindIsWhatItIs) { expect_families("configs/kinds.json", 150); }

// The text is meant; a path is the first thing that one tries.
TEST(Model, APathIsNotAConfig) {
  for (const char* const path : {"/models/llama/config.json", "model.gguf"}) {
    try {
      read_model(path);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), std::string("read_model takes the text of a config.json, not a path: ") + path);
    }
  }
}

TEST(Model, SaysWhatItAssumed) {
  const Model model = read_model(R"({"model_type":"glm4","head_dim":128,"num_hidden_layers":1})");
  EXPECT_EQ(model.assumed,
            (std::vector<std::string>{"max_position_embeddings = 131072 (the family's default; not given)",
                                      "rope_theta = 10000 (the family's default; not given)",
                                      "partial_rotary_factor = 0.5 (the family's default; not given)"}));
  EXPECT_EQ(model.trained_length, 131072);
}

// An answer that no code was read for is an assumption, and every one is marked.
TEST(Model, AnUnknownFamilyIsAssumedNeverSure) {
  const Model plain = read_model(R"({"model_type":"frobnicator9000","hidden_size":64,"num_attention_heads":4,
      "num_hidden_layers":3,"rope_theta":5000,"partial_rotary_factor":0.5})");
  EXPECT_TRUE(plain.is_assumed);
  ASSERT_EQ(plain.groups.size(), 1u);
  EXPECT_EQ(plain.groups[0].scheme, Scheme(Rope{.dims = 8, .base = 5000}));
  ASSERT_FALSE(plain.assumed.empty());
  EXPECT_EQ(plain.assumed[0],
            "model_type \"frobnicator9000\" is unknown: read as most families with rope are (layout, layers and "
            "defaults)");
  const Model near = read_model(R"({"model_type":"lama","head_dim":16,"num_hidden_layers":1,"rope_theta":1e4})");
  EXPECT_NE(near.assumed.at(0).find("(like 'llama'?)"), std::string::npos);

  const Model latent = read_model(R"({"model_type":"k3_dspark","num_hidden_layers":1,"qk_rope_head_dim":64,
      "qk_nope_head_dim":128,"rope_theta":50000})");
  const Rope& rope = std::get<Rope>(*latent.groups[0].scheme);
  EXPECT_EQ((std::pair(rope.dims, rope.first_dim)), (std::pair<std::int64_t, std::int64_t>(64, -64)));
  EXPECT_TRUE(latent.is_assumed);

  const Model part = read_model(R"({"model_type":"strange_vl","text_config":{"model_type":"strange",
      "head_dim":32,"num_hidden_layers":2,"rope_theta":1e6}})");
  EXPECT_TRUE(part.is_assumed);
  EXPECT_EQ(part.groups[0].scheme, Scheme(Rope{.dims = 32, .base = 1e6}));

  EXPECT_FALSE(read_model(R"({"model_type":"llama","head_dim":8})").is_assumed);
  EXPECT_TRUE(read_model(R"({"model_type":"ernie_layout"})").is_assumed);
}

TEST(Model, LayersWithoutPositionAreFromTheFamilysCode) {
  const auto assumes = [](const char* config, const std::string& text) {
    const Model model = read_model(config);
    return std::count(model.assumed.begin(), model.assumed.end(), text) == 1;
  };
  const std::string tail = " (from the family's code; the file does not say so)";
  EXPECT_TRUE(assumes(R"({"model_type":"afmoe"})", "no positional encoding in full_attention layers" + tail));
  EXPECT_TRUE(
      assumes(R"({"model_type":"recurrent_gemma"})", "no positional encoding in linear_attention layers" + tail));
  EXPECT_TRUE(assumes(R"({"model_type":"zamba2"})", "no positional encoding in hybrid layers" + tail));
  // a list of the file says it itself
  EXPECT_FALSE(assumes(R"({"model_type":"smollm3","num_hidden_layers":2,"no_rope_layers":[1,0]})",
                       "no positional encoding in any layer" + tail));
}

// Apertus' class has llama3 scaling by default, for null too.
TEST(Model, NullRopeParametersAreTheClasssOwn) {
  const Model missing = read_model(R"({"model_type":"apertus"})"),
              null = read_model(R"({"model_type":"apertus","rope_parameters":null,"rope_scaling":null})");
  EXPECT_EQ(missing.groups, null.groups);
  const auto* const rope = std::get_if<Rope>(&*null.groups[0].scheme);
  ASSERT_NE(rope, nullptr);
  EXPECT_TRUE(std::holds_alternative<Llama3Scaling>(*rope->scaling));
}

TEST(Model, WarnsOfKeys) {
  struct Case {
    const char* config;
    const char* warning;
  };
  const std::vector<Case> cases = {
      {R"({"model_type":"llama","head_dim":8,"rope_scaling":{"type":"linear","rope_type":"linear","factor":2}})",
       "rope_scaling: type is the older name of rope_type; both are given, and agree"},
      {R"({"model_type":"llama","head_dim":8,"max_position_embeddings":64,
          "rope_scaling":{"type":"yarn","rope_type":"linear","factor":2}})",
       "rope_scaling: type is \"yarn\" but rope_type is \"linear\", which is the one that transformers reads"},
      {R"({"model_type":"qwen3","head_dim":8,"max_position_embeddings":64,"rope_scaling":{"rope_type":"yarn","factor":4,
          "attn_factor":0.8782488562869419,"original_max_position_embeddings":16}})",
       "rope_scaling: attn_factor is ignored: transformers reads attention_factor; vLLM multiplies by attn_factor"},
      {R"({"model_type":"llama","head_dim":8,"rope_theta":500000,"rope_parameters":{"rope_type":"default"}})",
       "rope_theta is at the old place, and rope_parameters has none: a reader of the new place alone takes its "
       "default"},
      {R"({"model_type":"llama","head_dim":8,"rope_theta":500000,
          "rope_parameters":{"rope_type":"default","rope_theta":10000}})",
       "rope_theta is 500000 at the old place but rope_theta is 10000 in rope_parameters, which counts"},
      {R"({"model_type":"llama","head_dim":8,"rope_scaling":{"rope_type":"linear","factor":2},
          "rope_parameters":{"rope_type":"default","rope_theta":10000}})",
       "rope_scaling and rope_parameters differ: rope_scaling counts, as transformers reads it"},
      {R"({"model_type":"llama","head_dim":8,"rope_scaling":{"rope_type":"linear","factor":2,"beta_fast":32}})",
       "rope_scaling: beta_fast is ignored: rope_type linear does not read it"},
      {R"({"model_type":"llama","head_dim":8,"rope_scaling":{"rope_type":"yarn","factor":2,"mscale":1,
          "mscale_all_dim":1,"original_max_position_embeddings":64}})",
       "mscale_all_dim changes the magnitude alone: this family does not multiply its softmax scale by it, as "
       "DeepSeek "
       "does"},
      {R"({"model_type":"olmo3","head_dim":8,"num_hidden_layers":1,"layer_types":["full_attention"],
          "rope_parameters":{"full_attention":{"rope_type":"yarn","rope_theta":10000,"factor":2,"truncate":false,
          "original_max_position_embeddings":64}}})",
       "rope_parameters: full_attention: truncate: transformers looks for it one level up and misses it here"},
  };
  for (const Case& c : cases) {
    const Model model = read_model(c.config);
    ASSERT_EQ(model.warnings.size(), 1u) << c.config << (model.warnings.empty() ? "" : model.warnings.back());
    EXPECT_EQ(model.warnings.front(), c.warning);
  }
}

TEST(Model, RefusesBadConfigsInOneLine) {
  struct Case {
    std::string config;
    std::string error;
  };
  const auto with = [](std::string_view rest) {
    return fmt::format(R"({{"model_type":"llama","head_dim":8,"max_position_embeddings":64,{}}})", rest);
  };
  const std::vector<Case> cases = {
      {"", "line 1, column 1: the text is empty"},
      {"[]", "config.json must be an object but is []"},
      {"7", "config.json must be an object but is 7"},
      {"{}", "model_type is missing, which says how pairs are laid out"},
      {R"({"model_type":7})", "model_type must be a text but is 7"},
      {R"({"model_type":"lama"})", "model_type \"lama\" is unknown (did you mean 'llama'?)"},
      {R"({"model_type":"frobnicator9000"})",
       "model_type \"frobnicator9000\" is unknown (its layout and layers would be a guess)"},
      {with(R"("rope_theta":0)"), "rope_theta must be a number above 0 but is 0"},
      {with(R"("rope_theta":-1)"), "rope_theta must be a number above 0 but is -1"},
      {with(R"("rope_theta":NaN)"), "rope_theta must be a number above 0 but is NaN"},
      {with(R"("rope_theta":Infinity)"), "rope_theta must be a number above 0 but is Infinity"},
      {with(R"("rope_theta":"10000")"), "rope_theta must be a number above 0 but is \"10000\""},
      {with(R"("rope_theta":1)"), "rope_theta must be above 1 and at most 1e36 but is 1"},
      {R"({"model_type":"xverse"})",
       "head_dim is missing, and so is hidden_size or num_attention_heads to derive it from"},
      {R"({"model_type":"musicgen"})", "model_type \"musicgen\" is made of parts, and the file has none of them"},
      {R"({"model_type":"llama","head_dim":0})", "head_dim must be an integer from 1 to 2^53 but is 0"},
      {R"({"model_type":"llama","head_dim":7})", "head_dim must be even but is 7"},
      {R"({"model_type":"llama","head_dim":1000000})", "head_dim must be at most 65536 but is 1000000"},
      {R"({"model_type":"llama","head_dim":8,"num_hidden_layers":1000000000})",
       "num_hidden_layers must be at most 4096 but is 1000000000"},
      {R"({"model_type":"llama","head_dim":7.5})", "head_dim must be an integer from 1 to 2^53 but is 7.5"},
      {R"({"model_type":"llama","hidden_size":2,"num_attention_heads":3})",
       "head_dim is missing, and hidden_size 2 is less than num_attention_heads 3"},
      {R"({"model_type":"llama","hidden_size":100,"num_attention_heads":0})",
       "num_attention_heads must be an integer from 1 to 2^53 but is 0"},
      {with(R"("rope_scaling":"yarn")"), "rope_scaling must be an object or null but is \"yarn\""},
      {with(R"("rope_scaling":{"type":"yearn","factor":2})"),
       "rope_scaling: type \"yearn\" is unknown (did you mean 'yarn'?)"},
      {with(R"("rope_scaling":{"rope_type":"hyperbolic9"})"),
       "rope_scaling: rope_type \"hyperbolic9\" is unknown (known are default, mrope, linear, ntk, dynamic, xdrope, "
       "yarn, deepseek_yarn, longrope, su, llama3, proportional)"},
      {with(R"("rope_scaling":{"type":"linear"})"), "rope_scaling: factor is missing, which rope_type linear needs"},
      {with(R"("rope_scaling":{"type":"linear","factor":0})"),
       "rope_scaling: factor must be a number above 0 but is 0"},
      {with(R"("rope_scaling":{"type":"longrope","short_factor":[1,1,1,1],"long_factor":[1,1,1]})"),
       "rope_scaling: long_factor must have 4 numbers, one for each pair, but has 3"},
      {with(R"("rope_scaling":{"type":"longrope","short_factor":[1,1,1,0],"long_factor":[1,1,1,1]})"),
       "rope_scaling: short_factor must be a list of numbers above 0 but is [1,1,1,0]"},
      {with(R"("rope_scaling":{"type":"longrope"})"),
       "rope_scaling: short_factor is missing, which rope_type longrope needs"},
      {R"({"model_type":"qwen2_vl_text","head_dim":8,"rope_parameters":{"rope_type":"default","mrope_section":[1,1,1]}})",
       "rope_parameters: mrope_section must be a list that sums to 4, one for each pair, but is [1,1,1]"},
      {with(R"("partial_rotary_factor":1.7)"), "partial_rotary_factor must be above 0 and at most 1 but is 1.7"},
      {R"({"model_type":"phi","head_dim":8,"partial_rotary_factor":0.1})",
       "head dimension 8 times 0.1 gives 0 rotary dimensions, which must be an even number of at least 2"},
      {R"({"model_type":"llama","head_dim":8,"max_position_embeddings":9223372036854775807})",
       "max_position_embeddings must be an integer from 1 to 2^53 but is 9223372036854775807"},
      {R"({"model_type":"smollm3","head_dim":8,"num_hidden_layers":3,"no_rope_layers":[1,0]})",
       "no_rope_layers must have 3 entries, one for each layer, but has 2"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of(c.config), c.error) << c.config;
  for (const char* const text :
       {"\xEF\xBB\xBF{}", "{\"model_type\":\"llama\" /* no */}", "{\"rope_theta\":1e400}",
        "{\"rope_theta\":10000,\n\"rope_theta\":500000}", "{\"max_position_embeddings\":9223372036854775808}"}) {
    EXPECT_TRUE(error_of(text).starts_with("line ")) << error_of(text);
  }
  EXPECT_TRUE(error_of(std::string(1'000'000, '[')).starts_with("line 1, column "));
  EXPECT_EQ(error_of(with(R"("rope_scaling":null)")), "accepted, 1 groups");
  EXPECT_EQ(error_of(with(R"("unrelated":NaN)")), "accepted, 1 groups");
}

// 33 features cannot be halved, and nothing is made up for them.
TEST(Model, AnOddHeadIsNotComputed) {
  const Model model = read_model(R"({"model_type":"llama","hidden_size":100,"num_attention_heads":3})");
  EXPECT_FALSE(model.groups[0].scheme.has_value());
  EXPECT_EQ(model.groups[0].formula, "33 rotary dimensions of a head are odd: the last has no partner");
}

// glm4_moe's own defaults: 42 features of a head, of which 21 would rotate: transformers has 11 frequencies, and 22
// cosines.
TEST(Model, AnOddShareOfAHeadIsRoundedUp) {
  const Model model = read_model(R"({"model_type":"glm4_moe"})");
  ASSERT_TRUE(model.groups[0].scheme.has_value());
  const Rope& rope = std::get<Rope>(*model.groups[0].scheme);
  EXPECT_EQ(rope.dims, 22);
  const Rotation form = prepare(rope);
  ASSERT_EQ(form.frequencies.size(), 11u);
  for (std::size_t i = 0; i < 11; ++i) {
    const double expected = std::pow(10000.0, -2.0 * static_cast<double>(i) / 21);
    EXPECT_NEAR(radians_of(form.frequencies[i]) / expected, 1, 1e-12) << i;
  }
  EXPECT_EQ(model.trained_length, 131072);
}

// transformers 5.17: the one in rope_parameters, whatever the scaling is.
TEST(Model, ThePartialFactorOfTheDictionaryCounts) {
  const auto read = [](std::string_view type, std::string_view inner) {
    return read_model(fmt::format(R"({{"model_type":"phi","head_dim":80,"num_hidden_layers":1,
        "max_position_embeddings":2048,"partial_rotary_factor":0.5,
        "rope_parameters":{{"rope_type":"{}","factor":2.0,"rope_theta":10000.0{}}}}})",
                                  type, inner));
  };
  const auto dims = [](const Model& model) { return std::get<Rope>(*model.groups[0].scheme).dims; };
  for (const char* const type : {"linear", "dynamic", "yarn", "default"}) {
    SCOPED_TRACE(type);
    const Model both = read(type, R"(,"partial_rotary_factor":0.4)");
    EXPECT_EQ(dims(both), 32);
    EXPECT_TRUE(std::any_of(both.warnings.begin(), both.warnings.end(), [](const std::string& one) {
      return one.starts_with("partial_rotary_factor is 0.5 at the top and 0.4 in rope_parameters, which counts");
    }));
    EXPECT_EQ(dims(read(type, "")), 40);
  }
}

// What the weights were trained with counts, not what one engine lost.
TEST(Model, RotaryDimensionsAreThoseOfTheWeights) {
  const Model minimax = read_model(R"({"model_type":"minimax_m2","num_hidden_layers":1,"head_dim":128,
      "rotary_dim":64,"rope_theta":5000000})");
  EXPECT_EQ(std::get<Rope>(*minimax.groups[0].scheme).dims, 64);
  EXPECT_EQ(minimax.hf_rotary_dim, 128);
  ASSERT_EQ(minimax.warnings.size(), 1u);
  EXPECT_TRUE(minimax.warnings[0].ends_with("transformers 5 ignores it and rotates 128 of each head: a regression"));
  const Model whole = read_model(R"({"model_type":"minimax_m2","num_hidden_layers":1,"head_dim":128})");
  EXPECT_EQ(std::get<Rope>(*whole.groups[0].scheme).dims, 128);
  EXPECT_FALSE(whole.hf_rotary_dim);
  EXPECT_EQ(error_of(R"({"model_type":"minimax_m2","num_hidden_layers":1,"head_dim":128,"rotary_dim":130})"),
            "rotary_dim must be even and at most 128 but is 130");
  const Model gemma = read_model(R"({"model_type":"recurrent_gemma","num_hidden_layers":3})");
  EXPECT_EQ(std::get<Rope>(*gemma.groups[1].scheme).dims, 128);
  EXPECT_EQ(gemma.hf_rotary_dim, 256);
  EXPECT_TRUE(gemma.warnings.empty());
}

TEST(Model, KeysThatTransformersIgnores) {
  const auto warns = [](const char* config, const char* text) {
    const Model model = read_model(config);
    return std::find(model.warnings.begin(), model.warnings.end(), text) != model.warnings.end();
  };
  EXPECT_TRUE(warns(R"({"model_type":"llama","head_dim":8,"partial_rotary_factor":0.5})",
                    "partial_rotary_factor is ignored: this family rotates whole heads"));
  EXPECT_TRUE(
      warns(R"({"model_type":"llama","head_dim":8,"max_position_embeddings":64,"rope_scaling":{"type":"dynamic",
      "factor":2,"original_max_position_embeddings":32}})",
            "rope_scaling: original_max_position_embeddings is ignored: rope_type dynamic takes "
            "max_position_embeddings for the trained length"));
  EXPECT_TRUE(warns(R"({"model_type":"llama","head_dim":8,"rope_parameters":{"rope_type":"default",
      "mrope_section":[1,1,1]}})",
                    "rope_parameters: mrope_section is ignored: positions of this family have one axis"));
  EXPECT_TRUE(warns(R"({"model_type":"llava","hidden_size":8})",
                    "hidden_size and its like at the top are ignored: transformers reads text_config alone, which is "
                    "missing"));
  EXPECT_TRUE(
      warns(R"({"model_type":"gemma3_text","num_hidden_layers":1,"rope_scaling":{"type":"linear","factor":8}})",
            "rope_scaling is ignored: transformers reads rope_type, not type, for this family"));
}

TEST(Model, TheLayerThatDiffersIsCounted) {
  const auto first = [](const char* type) {
    return read_model(fmt::format(R"({{"model_type":"{}","num_hidden_layers":9}})", type)).assumed.front();
  };
  EXPECT_TRUE(first("granite_swa").starts_with("layer 1 of every 4 differs")) << first("granite_swa");
  EXPECT_TRUE(first("gemma2").starts_with("layer 2 of every 2 differs")) << first("gemma2");
}

TEST(Model, RangesOfLayers) {
  const std::vector<std::int64_t> layers = {0, 1, 2, 4, 6, 7};
  EXPECT_EQ(layer_ranges(layers), "0-2,4,6-7");
  EXPECT_EQ(layer_ranges({}), "");
}

}  // namespace
}  // namespace posenc::model_test
