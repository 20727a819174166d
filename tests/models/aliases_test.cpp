#include "posenc/aliases.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "posenc/error.h"
#include "posenc/scheme.h"

namespace posenc::aliases_test {
namespace {

std::string error_of(std::string_view json) {
  try {
    return to_json(scheme_from_json(json));
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Aliases, Schemes) {
  for (const std::string_view name : {"rope", "RoPE", "ROPE", "rotary", "Rotary", "rotary_embedding"}) {
    EXPECT_EQ(scheme_meant(name), "rope") << name;
  }
  EXPECT_EQ(scheme_meant("ALiBi"), "alibi");
  EXPECT_EQ(scheme_meant("T5"), "t5");
  EXPECT_EQ(scheme_meant("NoPE"), "none");
  EXPECT_EQ(scheme_meant("frobnicate"), "frobnicate");
  for (const std::string_view name : scheme_names()) EXPECT_EQ(scheme_meant(name), name);
}

TEST(Aliases, FieldsInJson) {
  EXPECT_EQ(scheme_from_json(R"({"scheme":"RoPE","rope_theta":500000,"head_dim":64})"),
            Scheme(Rope{.dims = 64, .base = 500000}));
  EXPECT_EQ(scheme_from_json(R"({"scheme":"rope","rotary_dim":32,"theta":100,"layout":"neox"})"),
            Scheme(Rope{.dims = 32, .base = 100}));
  EXPECT_EQ(scheme_from_json(R"({"scheme":"rope","layout":"gptj"})"),
            Scheme(Rope{.layout = PairLayout::kInterleaved}));
  EXPECT_EQ(scheme_from_json(R"({"scheme":"sinusoidal","d_model":8})"), Scheme(Sinusoidal{.width = 8}));
  EXPECT_EQ(scheme_from_json(R"({"scheme":"learned","max_len":9,"hidden_size":8})"),
            Scheme(Learned{.rows = 9, .width = 8}));
  EXPECT_EQ(error_of(R"({"scheme":"rope","base":1,"theta":2})"), "rope: base is given twice, under two names");
  EXPECT_EQ(error_of(R"({"scheme":"rope","d_model":2})"), "rope: unknown field \"d_model\"");
}

// As config.json has it.
TEST(Aliases, ScalingsOfConfigJson) {
  const auto scaling = [](const std::string& json) {
    return std::get<Rope>(scheme_from_json(R"({"scheme":"rope","scaling":)" + json + "}")).scaling;
  };
  EXPECT_EQ(scaling(R"({"rope_type":"yarn","factor":4,"original_max_position_embeddings":32768})"),
            RopeScaling(YarnScaling{.factor = 4, .original_length = 32768}));
  EXPECT_EQ(scaling(R"({"type":"linear","rope_type":"linear","factor":2})"), RopeScaling(LinearScaling{.factor = 2}));
  EXPECT_EQ(
      scaling(R"({"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,
                        "original_max_position_embeddings":8192})"),
      RopeScaling(Llama3Scaling{.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_length = 8192}));
  EXPECT_EQ(
      scaling(R"({"rope_type":"su","short_factor":[1],"long_factor":[2],
                        "original_max_position_embeddings":64,"factor":2})"),
      RopeScaling(LongropeScaling{.factor = 2, .original_length = 64, .short_factors = {1}, .long_factors = {2}}));
  EXPECT_EQ(scaling(R"({"rope_type":"default"})"), RopeScaling(NoScaling{}));
  EXPECT_EQ(scaling(R"({"rope_type":"dynamic","alpha":1000,"factor":1,"beta_fast":32})"),
            RopeScaling(AlphaScaling{.alpha = 1000}));
  EXPECT_EQ(error_of(R"({"scheme":"rope","scaling":{"rope_type":"yarn","factor":4,"rope_theta":1}})"),
            "scaling: rope_theta is no part of it: give it as base");
  EXPECT_EQ(scaling(R"({"type":"yarn","factor":4})"), RopeScaling(YarnScaling{.factor = 4}));
}

// A near miss is one or two slips, in any case; another word is none.
TEST(Aliases, NearMisses) {
  const std::vector<std::string_view> names = {"blt", "llama", "rope", "sinusoidal", "--theta", "width"};
  EXPECT_EQ(nearest_name("vit", names), "");
  EXPECT_EQ(nearest_name("lama", names), "llama");
  EXPECT_EQ(nearest_name("rpoe", names), "rope");
  EXPECT_EQ(nearest_name("widht", names), "width");
  EXPECT_EQ(nearest_name("Sinusodial", names), "sinusoidal");
  EXPECT_EQ(nearest_name("--thetta", names), "--theta");
  EXPECT_EQ(nearest_name("--help", {"--theta"}), "");
}

}  // namespace
}  // namespace posenc::aliases_test
