#include "posenc/compare.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/engines.h"
#include "posenc/error.h"

namespace posenc::compare_test {
namespace {

EngineComparison compared(std::string_view config, std::int64_t length, std::vector<std::string_view> engines = {}) {
  return compare_engines(read_model(config), {.engines = engines, .length = length});
}

const EngineAnswer& answer(const EngineComparison& found, std::string_view topic, std::string_view engine) {
  static const EngineAnswer missing{.engine = "missing"};
  for (const EngineTopic& one : found.topics) {
    if (one.name != topic) continue;
    for (const EngineAnswer& other : one.engines) {
      if (other.engine == engine) return other;
    }
  }
  ADD_FAILURE() << topic << " has nothing on " << engine;
  return missing;
}

bool differs(const EngineComparison& found, std::string_view topic) {
  for (const EngineTopic& one : found.topics) {
    if (one.name == topic) return one.differs;
  }
  ADD_FAILURE() << topic << " is not there";
  return false;
}

bool has(const EngineComparison& found, std::string_view topic) {
  for (const EngineTopic& one : found.topics) {
    if (one.name == topic) return true;
  }
  return false;
}

std::string error_of(const std::vector<std::string_view>& engines, std::int64_t length) {
  try {
    compared(R"({"model_type":"llama","head_dim":8})", length, engines);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

constexpr std::string_view kPhi = R"({"model_type":"phi3","hidden_size":32,"num_attention_heads":4,
    "num_hidden_layers":2,"max_position_embeddings":10000,"original_max_position_embeddings":4096,
    "rope_scaling":{"type":"longrope","short_factor":[1,1,1,1],"long_factor":[1,2,8,16]}})";

TEST(Compare, EveryRuleHasASubjectAndAPublicSource) {
  for (const models::EngineRule& rule : models::engine_rules()) {
    bool is_there = false;
    for (const models::Subject& subject : models::subjects()) is_there = is_there || subject.name == rule.subject;
    EXPECT_TRUE(is_there) << rule.subject;
    EXPECT_TRUE(rule.source.starts_with("https://")) << rule.source;
    // a line of one commit, or a thread; the paper, for the mathematics; a file of one commit of TensorRT-LLM
    const auto has = [&](std::string_view part) { return rule.source.find(part) != std::string_view::npos; };
    const bool is_thread = has("/pull/") || has("/issues/");
    EXPECT_TRUE(is_thread || has("#L") || has("arxiv.org") || rule.engine == "tensorrt-llm") << rule.source;
    EXPECT_FALSE(has("/blob/main/") || has("/blob/master/") || has("/tree/")) << rule.source;
    int same = 0;
    for (const models::EngineRule& other : models::engine_rules()) {
      same += other.subject == rule.subject && other.engine == rule.engine ? 1 : 0;
    }
    EXPECT_EQ(same, 1) << rule.subject << ' ' << rule.engine;
  }
  for (const models::Subject& subject : models::subjects()) {
    int engines = 0;
    for (const models::EngineRule& rule : models::engine_rules()) engines += rule.subject == subject.name ? 1 : 0;
    EXPECT_GE(engines, 2) << subject.name;
  }
}

// 2000 tokens: those that look at the sequence turn by the short list, those that decided at the start by the long
// one.
TEST(Compare, LongropeSwitch) {
  const EngineComparison near = compared(kPhi, 2000);
  EXPECT_TRUE(differs(near, "longrope-switch"));
  EXPECT_EQ(answer(near, "longrope-switch", "ctranslate2").angle, 0);
  // pairs 10000^(-i/4); at position 1999 pair 3 has turned by 1.999, or a 16th of it
  const double third = 1999 * 1e-3 * (1 - 1.0 / 16);
  EXPECT_GE(answer(near, "longrope-switch", "vllm").angle, third);
  EXPECT_LE(answer(near, "longrope-switch", "vllm").angle, std::numbers::pi);
  EXPECT_EQ(answer(near, "longrope-switch", "vllm").wave, answer(near, "longrope-switch", "llama.cpp").wave);
  const EngineComparison far = compared(kPhi, 5000);
  EXPECT_FALSE(differs(far, "longrope-switch"));
  // by tables alone: 2048 rows exist though only 500 are used
  const auto trained_on = [](int length) {
    return fmt::format(R"({{"model_type":"phi3","hidden_size":32,"num_attention_heads":4,
        "num_hidden_layers":2,"max_position_embeddings":4096,"original_max_position_embeddings":{},
        "rope_scaling":{{"type":"longrope","short_factor":[1,1,1,1],"long_factor":[1,2,8,16]}}}})",
                       length);
  };
  EXPECT_GT(answer(compared(trained_on(2047), 500), "longrope-switch", "ctranslate2").angle, 0.1);
  EXPECT_EQ(answer(compared(trained_on(2048), 500), "longrope-switch", "ctranslate2").angle, 0);
}

// 10000/4096 is 2.44, which CTranslate2 cuts to 2: the magnitudes by hand.
TEST(Compare, LongropeMagnitude) {
  const auto magnitude = [](double factor) { return std::sqrt(1 + std::log(factor) / std::log(4096.0)); };
  const EngineComparison found = compared(kPhi, 2000);
  EXPECT_NEAR(answer(found, "longrope-magnitude", "ctranslate2").wave, magnitude(10000.0 / 4096) - magnitude(2.0),
              1e-4);
  EXPECT_EQ(answer(found, "longrope-magnitude", "vllm").wave, 0);
}

TEST(Compare, DynamicNtk) {
  constexpr std::string_view config = R"({"model_type":"llama","head_dim":8,"num_hidden_layers":1,
      "max_position_embeddings":2048,"rope_theta":10000,"rope_scaling":{"type":"dynamic","factor":4}})";
  const EngineComparison found = compared(config, 4096);
  EXPECT_TRUE(differs(found, "dynamic-ntk"));
  EXPECT_FALSE(answer(found, "dynamic-ntk", "ctranslate2").is_able);
  // vLLM takes max_position_embeddings for the length: plain rope, which is right up to there
  EXPECT_EQ(answer(compared(config, 2000), "dynamic-ntk", "vllm").wave, 0);
  EXPECT_GT(answer(found, "dynamic-ntk", "vllm").angle, 0.1);
  EXPECT_EQ(answer(found, "dynamic-ntk", "vllm").since, "2026-05-19");
  // within the trained length nothing grows, so that plain rope is right
  EXPECT_EQ(answer(compared(config, 2000), "dynamic-ntk", "llama.cpp").wave, 0);
  EXPECT_GT(answer(found, "dynamic-ntk", "llama.cpp").wave, 0.1);
  // the slowest pair at the last token, by hand: base * (4 * 2 - 3)^(8/6) against 10000
  const double base = 10000 * std::pow(5.0, 8.0 / 6);
  const double angle = 4095 * (std::pow(10000.0, -0.75) - std::pow(base, -0.75));
  EXPECT_GE(answer(found, "dynamic-ntk", "llama.cpp").angle, std::min(angle, 3.0) - 1e-9);
}

// DeepSeek-R1-0528-Qwen3-8B has attn_factor, Laguna attention_factor: what each reader makes of them.
TEST(Compare, YarnMagnitude) {
  const auto config = [](std::string_view keys) {
    return fmt::format(
        R"({{"model_type":"qwen3","head_dim":128,"num_hidden_layers":1,"max_position_embeddings":131072,
        "rope_scaling":{{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768{}}}}})",
        keys);
  };
  const double own = 0.1 * std::log(4.0) + 1;
  const EngineComparison plain = compared(config(""), 1000);
  EXPECT_FALSE(differs(plain, "yarn-magnitude"));
  const EngineComparison given = compared(config(R"(,"attention_factor":1.0)"), 1000);
  EXPECT_TRUE(differs(given, "yarn-magnitude"));
  EXPECT_NEAR(answer(given, "yarn-magnitude", "vllm").wave, own - 1, 1e-3);
  EXPECT_NEAR(answer(given, "yarn-magnitude", "llama.cpp").wave, own - 1, 1e-3);
  EXPECT_NEAR(answer(given, "yarn-magnitude", "vllm").score, own * own - 1, 1e-9);
  EXPECT_LT(answer(given, "yarn-magnitude", "vllm").angle, 1e-12);
  const EngineComparison other = compared(config(R"(,"attn_factor":0.8782488562869419)"), 1000);
  EXPECT_NEAR(answer(other, "yarn-magnitude", "vllm").wave, own - 1, 1e-3);
  EXPECT_EQ(answer(other, "yarn-magnitude", "llama.cpp").wave, 0);
  EXPECT_FALSE(has(plain, "yarn-ramp"));
  EXPECT_GT(answer(compared(config(R"(,"truncate":false)"), 100'000), "yarn-ramp", "llama.cpp").angle, 0.01);
}

// Ministral 3's converter writes mscale_all_dim as yarn_log_multiplier, and llama.cpp divides by it, as transformers.
TEST(Compare, YarnMagnitudeOfMinistral) {
  const auto magnitude = [](std::string_view type) {
    return answer(compared(fmt::format(R"({{"model_type":"{}","head_dim":128,"num_hidden_layers":1,
        "max_position_embeddings":262144,"rope_parameters":{{"rope_type":"yarn","rope_theta":1000000,"factor":16.0,
        "original_max_position_embeddings":16384,"mscale":1.0,"mscale_all_dim":1.0}}}})",
                                       type),
                           1000),
                  "yarn-magnitude", "llama.cpp");
  };
  EXPECT_FALSE(magnitude("ministral3").differs);
  EXPECT_TRUE(magnitude("qwen3").differs);
}

TEST(Compare, KeysThatEnginesDoNotAllRead) {
  const EngineComparison minimax = compared(R"({"model_type":"minimax_m2","num_hidden_layers":1,"head_dim":128,
      "rotary_dim":64})",
                                            1000);
  EXPECT_FALSE(answer(minimax, "rotary-dim", "hf").differs);
  EXPECT_TRUE(answer(minimax, "rotary-dim", "vllm").differs);
  EXPECT_TRUE(answer(minimax, "rotary-dim", "llama.cpp").differs);
  EXPECT_EQ(answer(minimax, "rotary-dim", "hf").since, "2026-01-23");
  constexpr std::string_view gemma = R"({"model_type":"recurrent_gemma","num_hidden_layers":3)";
  const std::vector<std::string_view> both = {"hf4", "hf"};
  EXPECT_TRUE(answer(compared(fmt::format("{}}}", gemma), 1000, both), "rotary-share", "hf").differs);
  EXPECT_FALSE(has(compared(fmt::format(R"({},"partial_rotary_factor":1.0}})", gemma), 1000, both), "rotary-share"));
  EXPECT_FALSE(has(compared(R"({"model_type":"minimax_m2","num_hidden_layers":1,"head_dim":128,"rotary_dim":64,
      "partial_rotary_factor":0.5})",
                            1000),
                   "rotary-dim"));
  const EngineComparison dbrx = compared(R"({"model_type":"dbrx","d_model":256,"n_heads":2,"n_layers":1,
      "attn_config":{"rope_theta":500000}})",
                                         1000);
  EXPECT_TRUE(answer(dbrx, "base-key", "vllm").differs);
  EXPECT_FALSE(has(compared(R"({"model_type":"dbrx","d_model":256,"n_heads":2,"n_layers":1,"rope_theta":500000,
      "attn_config":{"rope_theta":500000}})",
                            1000),
                   "base-key"));
}

// The most frequent pain of the move to transformers 5: a reader of the old keys takes its own base.
TEST(Compare, RopeParametersAreNotReadByVersion4) {
  const std::vector<std::string_view> versions = {"hf", "hf4"};
  const auto found = [&](std::string_view type, std::string_view keys) {
    return compared(fmt::format(R"({{"model_type":"{}","head_dim":128,"num_hidden_layers":2{}}})", type, keys), 1000,
                    versions);
  };
  const EngineComparison moved =
      found("llama", R"(,"rope_parameters":{"rope_type":"default","rope_theta":500000.0})");
  EXPECT_TRUE(answer(moved, "rope-parameters", "hf4").differs);
  EXPECT_GT(answer(moved, "rope-parameters", "hf4").angle, 1);
  // its own default, or the key of version 4 beside the new one
  EXPECT_FALSE(
      has(found("llama", R"(,"rope_parameters":{"rope_type":"default","rope_theta":10000.0})"), "rope-parameters"));
  EXPECT_FALSE(has(found("mixtral", R"(,"rope_parameters":{"rope_type":"default","rope_theta":1000000.0})"),
                   "rope-parameters"));
  EXPECT_TRUE(
      has(found("mixtral", R"(,"rope_parameters":{"rope_type":"default","rope_theta":10000.0})"), "rope-parameters"));
  EXPECT_FALSE(has(found("llama", R"(,"rope_theta":500000.0,"rope_parameters":{"rope_type":"default",
      "rope_theta":500000.0})"),
                   "rope-parameters"));
  EXPECT_FALSE(has(found("llama", R"(,"rope_theta":500000.0)"), "rope-parameters"));
  const EngineComparison scaled =
      found("llama", R"(,"rope_parameters":{"rope_type":"linear","factor":8.0,"rope_theta":10000.0})");
  EXPECT_TRUE(answer(scaled, "rope-parameters", "hf4").differs);
  // by type of layers: the base of sliding layers has its own key and default
  const EngineComparison gemma = found("gemma3_text", R"(,"layer_types":["sliding_attention","full_attention"],
      "rope_parameters":{"full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":1000000.0},
      "sliding_attention":{"rope_type":"default","rope_theta":10000.0}})");
  for (const EngineTopic& topic : gemma.topics) {
    const bool is_changed = topic.name == "rope-parameters" && topic.layer_type == "full_attention";
    if (topic.name == "rope-parameters") {
      EXPECT_EQ(topic.differs, is_changed);
    }
  }
  EXPECT_TRUE(has(gemma, "rope-parameters"));
  const EngineComparison newer = found("qwen3_5_text", "");
  EXPECT_FALSE(answer(newer, "version-4", "hf4").is_able);
  EXPECT_FALSE(has(newer, "angle-precision"));  // an engine that refuses the model has no angles
}

TEST(Compare, Sglang) {
  const std::vector<std::string_view> engines = {"hf", "sglang"};
  const auto yarn = [&](std::string_view keys) {
    return compared(fmt::format(R"({{"model_type":"qwen3","head_dim":128,"num_hidden_layers":1,
        "max_position_embeddings":131072,"rope_scaling":{{"rope_type":"yarn","factor":4.0,
        "original_max_position_embeddings":32768{}}}}})",
                                keys),
                    1000, engines);
  };
  const double own = 0.1 * std::log(4.0) + 1;
  EXPECT_FALSE(differs(yarn(""), "yarn-magnitude"));
  EXPECT_FALSE(differs(yarn(R"(,"mscale":0.7,"mscale_all_dim":0.5)"), "yarn-magnitude"));
  EXPECT_NEAR(answer(yarn(R"(,"attention_factor":1.0)"), "yarn-magnitude", "sglang").score, own * own - 1, 1e-9);
  EXPECT_NEAR(answer(yarn(R"(,"attn_factor":0.5)"), "yarn-magnitude", "sglang").score, own * own * 0.75, 1e-9);
  constexpr std::string_view dynamic = R"({"model_type":"llama","head_dim":8,"num_hidden_layers":1,
      "max_position_embeddings":2048,"rope_theta":10000,"rope_scaling":{"type":"dynamic","factor":4}})";
  EXPECT_TRUE(differs(compared(dynamic, 2000, engines), "dynamic-ntk"));
  EXPECT_FALSE(differs(compared(dynamic, 8192, engines), "dynamic-ntk"));
  const auto ministral = [&](int original) {
    return compared(fmt::format(R"({{"model_type":"ministral3","num_hidden_layers":1,"head_dim":128,
        "max_position_embeddings":262144,"rope_parameters":{{"rope_type":"yarn","factor":16.0,"rope_theta":1000000.0,
        "original_max_position_embeddings":{},"mscale":1.0,"mscale_all_dim":1.0,"llama_4_scaling_beta":0.1}}}})",
                                original),
                    100'000, engines);
  };
  EXPECT_TRUE(differs(ministral(8192), "temperature"));
  EXPECT_FALSE(differs(ministral(16384), "temperature"));
}

TEST(Compare, Temperature) {
  const auto config = [](int floor) {
    return fmt::format(R"({{"model_type":"llama4_text","num_hidden_layers":4,"floor_scale":{}}})", floor);
  };
  EXPECT_FALSE(differs(compared(config(8192), 100'000), "temperature"));
  const EngineComparison other = compared(config(4096), 100'000);
  EXPECT_FALSE(answer(other, "temperature", "vllm").differs);
  EXPECT_TRUE(answer(other, "temperature", "llama.cpp").differs);
  // the last token of 100,000: 0.1 (ln(1 + 24) - ln(1 + 12))
  EXPECT_GE(answer(other, "temperature", "llama.cpp").score, 0.1 * std::log(25.0 / 13.0) - 1e-12);
}

TEST(Compare, SectionsThatTheCodeHas) {
  EXPECT_TRUE(has(compared(R"({"model_type":"qwen3_vl_text","num_hidden_layers":1,"head_dim":128})", 1000),
                  "mrope-unclaimed"));
}

TEST(Compare, EveryAnswerNamesItsVersion) {
  for (const std::string_view engine : known_engines()) {
    if (engine == "exact") continue;
    const auto versions = models::engine_versions();
    EXPECT_TRUE(std::any_of(versions.begin(), versions.end(), [&](const auto& one) {
      return one.engine == engine && (one.date.starts_with("202") || one.version.starts_with("assumed") ||
                                      one.version.ends_with("(undated)"));
    })) << engine;
  }
}

TEST(Compare, ChangesSince) {
  const std::vector<EngineChange> changes = engine_changes("2026-01-01");
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes.front().topic, "dynamic-ntk");
  for (const EngineChange& one : changes) {
    EXPECT_GE(one.date, "2026-01-01");
    EXPECT_FALSE(one.before.empty());
  }
  EXPECT_GT(engine_changes("2025").size(), changes.size());
  EXPECT_TRUE(engine_changes("2099").empty());
  const Model llama = read_model(R"({"model_type":"llama"})");
  EXPECT_TRUE(engine_changes("2020", &llama).empty());
  EXPECT_THROW(engine_changes("yesterday"), Error);
}

// The figures that are known of Qwen3-VL: pairs 61 and 62 miss 0.108 radians at position 262144, base 5e6.
TEST(Compare, Mrope) {
  constexpr std::string_view config = R"({"model_type":"qwen3_vl","text_config":{"model_type":"qwen3_vl_text",
      "head_dim":128,"num_hidden_layers":1,"max_position_embeddings":262144,"rope_theta":5000000,
      "rope_scaling":{"rope_type":"default","mrope_section":[24,20,20],"mrope_interleaved":true}}})";
  const EngineComparison found = compared(config, 262145);
  EXPECT_NEAR(answer(found, "mrope-unclaimed", "llama.cpp").angle, 262144 * std::pow(5e6, -122.0 / 128), 1e-9);
  EXPECT_NEAR(answer(found, "mrope-unclaimed", "llama.cpp").angle, 0.108, 0.0005);
  EXPECT_EQ(answer(found, "mrope-unclaimed", "vllm").wave, 0);
  EXPECT_NEAR(answer(compared(config, 32769), "mrope-unclaimed", "llama.cpp").angle, 0.0135, 0.0001);
  // text goes on 12 positions further
  const EngineAnswer advance = answer(compared(config, 100), "mrope-advance", "vllm");
  EXPECT_NEAR(advance.angle, std::numbers::pi, 0.6);
  EXPECT_GT(advance.score, 0.05);
  // 11, 11, 10 leave none over
  constexpr std::string_view newer = R"({"model_type":"qwen3_5","head_dim":256,"num_hidden_layers":4,
      "rope_parameters":{"rope_type":"default","rope_theta":10000000,"partial_rotary_factor":0.25,
      "mrope_section":[11,11,10],"mrope_interleaved":true}})";
  EXPECT_EQ(answer(compared(newer, 262144), "mrope-unclaimed", "llama.cpp").wave, 0);
}

TEST(Compare, Alibi) {
  constexpr std::string_view bloom = R"({"model_type":"bloom","n_head":6,"hidden_size":48,"n_layer":1})";
  const EngineComparison found = compared(bloom, 2048, {"hf", "vllm", "llama.cpp", "ctranslate2", "mlx"});
  for (const std::string_view engine : {"vllm", "llama.cpp", "ctranslate2"}) {
    EXPECT_EQ(answer(found, "alibi-slopes", engine).score, 0);
  }
  // mlx has the paper's rule since pull request 3071
  EXPECT_EQ(answer(found, "alibi-slopes", "mlx").score, 0);
  EXPECT_EQ(answer(found, "alibi-slopes", "mlx").since, "2026-01-29");
  EXPECT_FALSE(
      has(compared(R"({"model_type":"bloom","n_head":8,"hidden_size":64,"n_layer":1})", 100), "alibi-slopes"));
  // slope 1/2 times 2047 is 1023.5, which bfloat16 rounds to 1024; 1022.5 beside it to 1024 too
  const EngineAnswer& relative = answer(found, "alibi-position", "vllm");
  EXPECT_GE(relative.score, 1.5);
  EXPECT_LE(relative.score, 4.0);
  // Falcon's fifth slope of six heads is a power of two, but not those of 71
  constexpr std::string_view falcon =
      R"({"model_type":"falcon","alibi":true,"num_attention_heads":71,"hidden_size":4544,"num_hidden_layers":1})";
  const EngineAnswer unrounded = answer(compared(falcon, 2048), "alibi-rounding", "vllm");
  EXPECT_GT(unrounded.score, 0.05);
  EXPECT_LT(unrounded.score, 2047 * 0x1p-9 / 8);
}

// The orders of size that are known: at position 131071, base 1e4, 7.6e-3 for Hugging Face and 1.8e-2 for ggml.
TEST(Compare, AnglePrecision) {
  constexpr std::string_view config = R"({"model_type":"llama","head_dim":128,"num_hidden_layers":1})";
  const EngineComparison found = compared(config, 131072, {"exact", "hf", "llama.cpp", "vllm"});
  EXPECT_GT(answer(found, "angle-precision", "hf").wave, 3e-3);
  EXPECT_LT(answer(found, "angle-precision", "hf").wave, 1e-2);
  EXPECT_GT(answer(found, "angle-precision", "llama.cpp").wave, answer(found, "angle-precision", "hf").wave);
  EXPECT_LT(answer(found, "angle-precision", "llama.cpp").wave, 3e-2);
  EXPECT_TRUE(differs(found, "angle-precision"));
  const EngineComparison near = compared(config, 2048);
  EXPECT_TRUE(near.agrees());
  EXPECT_NEAR(answer(near, "angle-precision", "vllm").wave, 2e-3, 1e-3);  // half a unit of bfloat16 below 1
  EXPECT_EQ(answer(near, "angle-precision", "ctranslate2").wave, 0);
}

TEST(Compare, LengthsAndEngines) {
  EXPECT_EQ(compared(kPhi, 0).length, 10000);
  EXPECT_EQ(compared(kPhi, 1).length, 1);
  EXPECT_EQ(compared(R"({"model_type":"mamba","hidden_size":8})", 0).topics.size(), 0u);
  EXPECT_EQ(
      error_of({"hf", "vlm"}, 8),
      "unknown engine 'vlm' (one of hf, vllm, llama.cpp, ctranslate2, mlx, hf4, sglang, exllamav3, tensorrt-llm, exact)");
  EXPECT_EQ(error_of({"hf"}, 8), "at least two engines are needed");
  EXPECT_EQ(error_of({"hf", "hf"}, 8), "engine 'hf' is named twice");
  EXPECT_EQ(error_of({}, -1), "the length must be from 1 to 2^40 but is -1");
  EXPECT_EQ(error_of({}, (std::int64_t{1} << 40) + 1), "the length must be from 1 to 2^40 but is 1099511627777");
  EXPECT_EQ(error_of({}, std::int64_t{1} << 40), "accepted");
}

// A verdict on nothing is no agreement.
TEST(Compare, WhatWasNotComparedDoesNotAgree) {
  const EngineComparison none = compared(R"({"model_type":"mamba","hidden_size":8})", 0);
  EXPECT_EQ(none.compared(), 0);
  EXPECT_FALSE(none.agrees());
  // an engine that refuses the model has nothing to compare, in any topic
  constexpr std::string_view yarn =
      R"({"model_type":"llama","head_dim":64,"num_hidden_layers":1,"max_position_embeddings":2048,
          "rope_scaling":{"rope_type":"yarn","factor":2,"original_max_position_embeddings":1024}})";
  const EngineComparison alone = compared(yarn, 1000, {"hf", "ctranslate2"});
  EXPECT_TRUE(has(alone, "angle-precision"));
  EXPECT_EQ(alone.compared(), 0);
  EXPECT_FALSE(alone.agrees());
  EXPECT_FALSE(answer(alone, "angle-precision", "ctranslate2").is_able);
  const EngineComparison pair = compared(yarn, 1000, {"hf", "ctranslate2", "llama.cpp"});
  EXPECT_GT(pair.compared(), 0);
  EXPECT_TRUE(pair.agrees());
}

// TensorRT-LLM 0071496d, tensorrt_llm/functional.py, RopeEmbeddingUtils
TEST(Compare, TensorrtLlm) {
  const std::vector<std::string_view> engines = {"hf", "tensorrt-llm"};
  const auto yarn = [&](std::string_view keys) {
    return compared(fmt::format(R"({{"model_type":"qwen3","head_dim":128,"num_hidden_layers":1,
        "max_position_embeddings":131072,"rope_scaling":{{"rope_type":"yarn","factor":4.0,
        "original_max_position_embeddings":32768{}}}}})",
                                keys),
                    1000, engines);
  };
  EXPECT_FALSE(differs(yarn(""), "yarn-magnitude"));
  EXPECT_TRUE(differs(yarn(R"(,"attention_factor":1.0)"), "yarn-magnitude"));
  EXPECT_FALSE(differs(yarn(R"(,"mscale":1.0,"mscale_all_dim":1.0)"), "yarn-magnitude"));
  EXPECT_TRUE(differs(yarn(R"(,"truncate":false)"), "yarn-ramp"));
  EXPECT_TRUE(differs(compared(kPhi, 100, engines), "longrope-switch"));
  EXPECT_FALSE(differs(compared(kPhi, 9000, engines), "longrope-switch"));
  constexpr std::string_view dynamic = R"({"model_type":"llama","head_dim":8,"num_hidden_layers":1,
      "max_position_embeddings":2048,"rope_theta":10000,"rope_scaling":{"type":"dynamic","factor":4}})";
  EXPECT_FALSE(answer(compared(dynamic, 2000, engines), "dynamic-ntk", "tensorrt-llm").is_able);
}

// exllamav3 1.4.1, util/rope.py: lines 277 to 303 and 322
TEST(Compare, Exllamav3) {
  const std::vector<std::string_view> engines = {"hf", "exllamav3"};
  const auto yarn = [&](std::int64_t length, std::string_view keys) {
    return compared(fmt::format(R"({{"model_type":"qwen3","head_dim":128,"num_hidden_layers":1,
        "max_position_embeddings":{},"rope_scaling":{{"rope_type":"yarn","factor":4.0,
        "original_max_position_embeddings":32768{}}}}})",
                                length, keys),
                    1000, engines);
  };
  const double own = 0.1 * std::log(4.0) + 1;
  EXPECT_FALSE(differs(yarn(131072, ""), "yarn-magnitude"));
  EXPECT_FALSE(differs(yarn(131072, R"(,"attention_factor":1.0)"), "yarn-magnitude"));
  EXPECT_NEAR(answer(yarn(131072, R"(,"mscale":1.0,"mscale_all_dim":1.0)"), "yarn-magnitude", "exllamav3").score,
              own * own - 1, 1e-9);
  // a config that keeps its trained length is not scaled at all
  const EngineComparison kept = yarn(32768, "");
  EXPECT_GE(answer(kept, "yarn-magnitude", "exllamav3").wave, own - 1);
  EXPECT_GT(answer(kept, "yarn-magnitude", "exllamav3").angle, 0.1);
  EXPECT_FALSE(differs(yarn(131072, R"(,"truncate":false)"), "yarn-ramp"));
  // the long list from the start, as max_position_embeddings is longer than the trained length
  EXPECT_TRUE(differs(compared(kPhi, 100, engines), "longrope-switch"));
  EXPECT_FALSE(differs(compared(kPhi, 9000, engines), "longrope-switch"));
  constexpr std::string_view dynamic = R"({"model_type":"llama","head_dim":8,"num_hidden_layers":1,
      "max_position_embeddings":2048,"rope_theta":10000,"rope_scaling":{"type":"dynamic","factor":4}})";
  EXPECT_FALSE(answer(compared(dynamic, 2000, engines), "dynamic-ntk", "exllamav3").is_able);
  EXPECT_FALSE(answer(compared(R"({"model_type":"minimax_m2","head_dim":128,"rotary_dim":64,"num_hidden_layers":1})",
                               100, {"vllm", "exllamav3"}),
                      "rotary-dim", "exllamav3")
                   .differs);
}

// mlx-lm 0.32.0, rope_utils.py
TEST(Compare, Mlx) {
  const EngineComparison longrope = compared(kPhi, 100, {"hf", "mlx"});
  EXPECT_GT(answer(longrope, "longrope-switch", "mlx").angle, 0.1);  // the long list, for short sequences too
  EXPECT_EQ(answer(compared(kPhi, 9000, {"hf", "mlx"}), "longrope-switch", "mlx").angle, 0);
  constexpr std::string_view yarn =
      R"({"model_type":"llama","head_dim":64,"num_hidden_layers":1,"max_position_embeddings":4096,
          "rope_scaling":{"rope_type":"yarn","factor":4,"original_max_position_embeddings":1024,"mscale":0.5}})";
  const double expected = 0.05 * std::log(4.0) + 1, usual = 0.1 * std::log(4.0) + 1;
  EXPECT_NEAR(answer(compared(yarn, 64, {"hf", "mlx"}), "yarn-magnitude", "mlx").wave, usual - expected, 1e-9);
}

}  // namespace
}  // namespace posenc::compare_test
