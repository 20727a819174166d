#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "formats/file_bytes.h"
#include "posenc/error.h"
#include "posenc/gguf.h"
#include "posenc/json.h"
#include "posenc/layer.h"
#include "posenc/model.h"

namespace posenc::gguf_model_test {
namespace {

std::string text(const std::string& value) { return stored<std::uint64_t>(value.size()) + value; }
std::string entry(const std::string& key, std::uint32_t number, const std::string& value) {
  return text(key) + stored(number) + value;
}
std::string word(const std::string& key, const std::string& value) { return entry(key, 8, text(value)); }
std::string whole(const std::string& key, std::uint32_t value) { return entry(key, 4, stored(value)); }
std::string number(const std::string& key, float value) { return entry(key, 6, stored(value)); }

/// A file with these entries and one f32 tensor, where it has numbers.
std::string file_of(const std::vector<std::string>& entries, const std::string& name = "",
                    const std::vector<float>& values = {}) {
  std::string file = "GGUF" + stored<std::uint32_t>(3) + stored<std::uint64_t>(values.empty() ? 0 : 1) +
                     stored<std::uint64_t>(entries.size());
  for (const std::string& one : entries) file += one;
  if (values.empty()) return file;
  file += text(name) + stored<std::uint32_t>(1) + stored<std::uint64_t>(values.size()) + stored<std::uint32_t>(0) +
          stored<std::uint64_t>(0);
  file.append((32 - file.size() % 32) % 32, '\0');
  std::string data = stored_all(values);
  data.append((32 - data.size() % 32) % 32, '\0');
  return file + data;
}

Model model_of(const std::string& file) {
  std::vector<std::uint64_t> aligned(file.size() / 8 + 1);
  std::memcpy(aligned.data(), file.data(), file.size());
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(aligned.data()), file.size());
  return read_model(read_gguf_head(bytes), bytes);
}

std::vector<std::string> llama(const std::vector<std::string>& more = {}) {
  std::vector<std::string> entries = {word("general.architecture", "llama"), whole("llama.block_count", 4),
                                      whole("llama.context_length", 131072), whole("llama.rope.dimension_count", 128),
                                      number("llama.rope.freq_base", 500000.0F)};
  entries.insert(entries.end(), more.begin(), more.end());
  return entries;
}

TEST(GgufModel, LlamaIsInterleavedThere) {
  const Model model = model_of(file_of(llama()));
  ASSERT_EQ(model.groups.size(), 1u);
  EXPECT_EQ(model.groups[0].scheme, Scheme(Rope{.dims = 128, .base = 500000.0, .layout = PairLayout::kInterleaved}));
  EXPECT_EQ(layer_ranges(model.groups[0].layers), "0-3");
  EXPECT_EQ(model.trained_length, 131072);
}

TEST(GgufModel, FrequenciesOfLlama3AreRecognised) {
  const Rope plain{.dims = 128, .base = 500000.0};
  Rope stretched = plain;
  stretched.scaling = Llama3Scaling{.factor = 32};
  const Rotation from = prepare(plain), to = prepare(stretched);
  std::vector<float> ratios;
  for (std::size_t i = 0; i < from.frequencies.size(); ++i) {
    ratios.push_back(static_cast<float>(radians_of(from.frequencies[i]) / radians_of(to.frequencies[i])));
  }
  const Model model = model_of(file_of(llama(), "rope_freqs.weight", ratios));
  EXPECT_EQ(std::get<Rope>(*model.groups[0].scheme).scaling, RopeScaling(Llama3Scaling{.factor = 32}));
  EXPECT_EQ(model.trained_length, 8192);

  ratios[5] = 3;
  const Model other = model_of(file_of(llama(), "rope_freqs.weight", ratios));
  const Rotation form =
      prepare(std::get<Rope>(*other.groups[0].scheme), {.length = other.trained_length.value_or(0)});
  EXPECT_NEAR(radians_of(form.frequencies[5]) * 3, radians_of(from.frequencies[5]), 1e-12);
  EXPECT_EQ(form.magnitude, 1.0);
}

TEST(GgufModel, Scalings) {
  const Model linear = model_of(
      file_of(llama({word("llama.rope.scaling.type", "linear"), number("llama.rope.scaling.factor", 4.0F)})));
  EXPECT_EQ(std::get<Rope>(*linear.groups[0].scheme).scaling, RopeScaling(LinearScaling{.factor = 4}));
  const std::vector<std::string> deepseek = {word("general.architecture", "deepseek2"),
                                             whole("deepseek2.block_count", 2),
                                             whole("deepseek2.context_length", 163840),
                                             whole("deepseek2.rope.dimension_count", 64),
                                             number("deepseek2.rope.freq_base", 10000.0F),
                                             word("deepseek2.rope.scaling.type", "yarn"),
                                             number("deepseek2.rope.scaling.factor", 40.0F),
                                             whole("deepseek2.rope.scaling.original_context_length", 4096),
                                             number("deepseek2.rope.scaling.yarn_log_multiplier", 0.1F)};
  const LayerGroup group = model_of(file_of(deepseek)).groups[0];
  const Rope& rope = std::get<Rope>(*group.scheme);
  EXPECT_EQ(rope.layout, PairLayout::kInterleaved);
  EXPECT_EQ(rope.first_dim, -64);
  EXPECT_NEAR(prepare(rope).magnitude, 1.0, 1e-12);
  EXPECT_NEAR(prepare(rope).softmax_factor, std::pow(1 + 0.1 * std::log(40.0), 2), 1e-6);
}

TEST(GgufModel, LocalAndGlobalLayers) {
  const Model model =
      model_of(file_of({word("general.architecture", "gemma3"), whole("gemma3.block_count", 6),
                        whole("gemma3.attention.key_length", 256), number("gemma3.rope.freq_base", 1e6F),
                        whole("gemma3.attention.sliding_window", 1024)}));
  ASSERT_EQ(model.groups.size(), 2u);
  EXPECT_EQ(model.groups[0].window, 1024);
  EXPECT_EQ(model.groups[0].scheme, Scheme(Rope{.dims = 256, .base = 10000.0}));
  EXPECT_EQ(model.groups[1].scheme, Scheme(Rope{.dims = 256, .base = 1e6}));
  EXPECT_EQ(layer_ranges(model.groups[1].layers), "5");
}

std::string list(const std::string& key, const std::vector<std::uint32_t>& values) {
  std::string body = stored<std::uint32_t>(4) + stored<std::uint64_t>(values.size());
  for (const std::uint32_t value : values) body += stored(value);
  return entry(key, 9, body);
}

// A model of an architecture with eight layers, 4 heads and 256 features.
Model small_model(const std::string& architecture, std::vector<std::string> more, std::uint32_t blocks = 8) {
  const auto named = [&](const char* key) { return architecture + "." + key; };
  more.insert(more.begin(), {word("general.architecture", architecture), whole(named("block_count"), blocks),
                             whole(named("context_length"), 4096), whole(named("embedding_length"), 256),
                             whole(named("attention.head_count"), 4)});
  return model_of(file_of(more));
}

// llama.cpp b21e4de7: load_arch_hparams in src/models/*.cpp, is_masked_swa in src/llama-hparams.h.
TEST(GgufModel, AttentionIsThatOfLlamaCpp) {
  const Model llama4 = small_model("llama4", {});
  AttentionOptions options = layer(llama4, 0).attention;
  EXPECT_EQ((std::pair(options.chunk, options.window)), (std::pair<std::int64_t, std::int64_t>(8192, 0)));
  EXPECT_EQ(options.temperature, std::nullopt);
  options = layer(llama4, 3).attention;
  EXPECT_EQ(options.chunk, 0);
  EXPECT_EQ(options.temperature, (Temperature{.scale = 0.1, .length = 8192, .shift = 1}));
  EXPECT_EQ(layer(small_model("llama4", {whole("llama4.attention.sliding_window", 0)}), 3).attention.temperature,
            std::nullopt);

  options = layer(small_model("gemma2", {}), 0).attention;
  EXPECT_EQ(options.window, 4096);
  EXPECT_EQ(options.softcap, 50);
  EXPECT_EQ(options.scale, std::nullopt);
  // 27B: not the head's features, but those that embeddings would give it
  EXPECT_EQ(layer(small_model("gemma2", {whole("gemma2.attention.key_length", 128)}, 46), 0).attention.scale,
            1.0 / 8);
  EXPECT_EQ(layer(small_model("gemma3", {}, 62), 0).attention.scale, 1.0 / 8);
  EXPECT_EQ(layer(small_model("gemma3n", {whole("gemma3n.attention.sliding_window", 512)}), 0).attention.scale, 1.0);

  const Model grok = small_model("grok", {});
  EXPECT_EQ(layer(grok, 0).attention.softcap, 30);
  EXPECT_EQ(layer(grok, 0).attention.scale, 0.08838834764831845);
  EXPECT_EQ(layer(small_model("grok", {number("grok.attention.output_scale", 0.5F)}), 0).attention.scale, 0.5);

  // as many keys on either side as half of the window
  options = layer(small_model("modern-bert", {whole("modern-bert.attention.sliding_window", 128)}), 1).attention;
  EXPECT_EQ((std::pair(options.window, options.causal)), (std::pair<std::int64_t, bool>(65, false)));

  const auto warm = [](const std::string& architecture, const std::vector<std::string>& more) {
    std::vector<std::string> entries = {number(architecture + ".attention.temperature_scale", 0.25F)};
    entries.insert(entries.end(), more.begin(), more.end());
    return layer(small_model(architecture, entries), 0).attention.temperature;
  };
  EXPECT_EQ(warm("mistral3", {whole("mistral3.rope.scaling.original_context_length", 16384)}),
            (Temperature{.scale = 0.25, .length = 16384}));
  EXPECT_EQ(warm("mistral4", {whole("mistral4.attention.temperature_length", 8192)}),
            (Temperature{.scale = 0.25, .length = 8192}));
  EXPECT_THROW(warm("mistral3", {}), Error);

  // diffusion models see both directions, and so does any whose file says so
  for (const char* const type : {"dream", "llada", "llada-moe", "rnd1"}) {
    EXPECT_FALSE(layer(small_model(type, {}), 0).attention.causal) << type;
  }
  EXPECT_TRUE(layer(small_model("qwen2", {}), 0).attention.causal);
  EXPECT_FALSE(
      layer(small_model("qwen2", {entry("qwen2.attention.causal", 7, std::string(1, '\0'))}), 0).attention.causal);

  // MiMo-V2: where the file holds them
  const Model mimo = model_of(file_of(
      {word("general.architecture", "mimo2"), whole("mimo2.block_count", 2), whole("mimo2.embedding_length", 64),
       whole("mimo2.attention.head_count", 4), whole("mimo2.attention.key_length", 16)},
      "blk.1.attn_sinks.weight", {1, 2, 3, 4}));
  EXPECT_FALSE(mimo.groups.at(0).has_sinks);
  EXPECT_TRUE(mimo.groups.at(1).has_sinks);

  // an encoder and a decoder
  const std::vector<float> table(32 * 4);
  const Model t5 =
      small_model("t5", {whole("t5.attention.relative_buckets_count", 32), whole("t5.decoder_block_count", 3)});
  const PrepareOptions with_table{.weights = view(table.data(), {32, 4})};
  const PreparedLayer encoder = layer(t5, 7, {.part = "encoder", .prepare = with_table}),
                      decoder = layer(t5, 2, {.part = "decoder", .prepare = with_table});
  EXPECT_EQ((std::pair(encoder.attention.causal, decoder.attention.causal)), (std::pair(false, true)));
  EXPECT_EQ(decoder.attention.scale, 1.0);
  EXPECT_EQ(t5.groups[0].scheme, Scheme(T5{.heads = 4}));
  EXPECT_EQ(t5.groups[1].scheme, Scheme(T5{.heads = 4, .bidirectional = false}));
  EXPECT_THROW(layer(t5, 3, {.part = "decoder", .prepare = with_table}), Error);

  const std::vector<float> sinks(4);
  const LayerInputs with_sinks{.sinks = view(sinks.data(), {4})};
  const Model v4 = small_model("deepseek4", {list("deepseek4.attention.compress_ratios", {0, 4, 0, 4, 0, 4, 0, 4}),
                                             whole("deepseek4.attention.sliding_window", 128)});
  EXPECT_EQ(layer(v4, 0, with_sinks).attention.window, 128);
  EXPECT_THROW(layer(v4, 1, with_sinks), Error);
}

// "rope 0-3" for each group
std::string groups_of(const std::string& architecture, const std::vector<std::string>& more,
                      std::uint32_t blocks = 8) {
  const Model model = small_model(architecture, more, blocks);
  std::string text;
  for (const LayerGroup& group : model.groups) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", group.scheme_name, layer_ranges(group.layers));
  }
  return text;
}

TEST(GgufModel, LayersThatDiffer) {
  // hybrids: a list of key heads with 0, or a period
  EXPECT_EQ(groups_of("lfm2", {list("lfm2.attention.head_count_kv", {0, 0, 4, 0, 0, 4, 0, 0})}),
            "none 0-1,3-4,6-7, rope 2,5");
  EXPECT_EQ(groups_of("qwen3next", {}), "none 0-2,4-6, rope 3,7");
  EXPECT_EQ(groups_of("qwen3next", {whole("qwen3next.full_attention_interval", 2)}), "none 0,2,4,6, rope 1,3,5,7");
  // blocks at the end that predict further tokens are attention
  EXPECT_EQ(groups_of("qwen3next", {whole("qwen3next.nextn_predict_layers", 1)}, 9), "none 0-2,4-6, rope 3,7-8");
  // windows, their periods and lists
  EXPECT_EQ(groups_of("gemma3", {}), "rope 0-7");
  EXPECT_EQ(groups_of("gemma3n", {whole("gemma3n.attention.sliding_window", 512)}), "rope 0-3,5-7, rope 4");
  EXPECT_EQ(groups_of("cohere2", {whole("cohere2.attention.sliding_window", 512)}), "rope 0-2,4-6, none 3,7");
  EXPECT_EQ(groups_of("smallthinker", {whole("smallthinker.attention.sliding_window", 512)}),
            "none 0,4, rope 1-3,5-7");
  EXPECT_EQ(groups_of("smollm3", {}), "rope 0-2,4-6, none 3,7");
  // exaone4 has windows in its model of 64 layers alone
  EXPECT_EQ(groups_of("exaone4", {whole("exaone4.attention.sliding_window", 512)}), "rope 0-7");
  EXPECT_TRUE(groups_of("exaone4", {whole("exaone4.attention.sliding_window", 512)}, 64).find("none 3,7") !=
              std::string::npos);
  EXPECT_EQ(groups_of("starcoder", {}), "learned 0-7");
  EXPECT_EQ(groups_of("baichuan", {}, 40), "alibi 0-39");
  EXPECT_EQ(groups_of("baichuan", {}, 32), "rope 0-31");
  EXPECT_EQ(groups_of("granitehybrid", {entry("granitehybrid.rope.scaling.finetuned", 7, std::string(1, '\0'))}),
            "none 0-7");
}

// Every architecture of llama.cpp, with the layout that it rotates by.
TEST(GgufModel, EveryArchitectureAnswers) {
  std::ifstream stream(std::string(POSENC_TEST_DATA) + "/configs/architectures.json", std::ios::binary);
  const Json types = parse_json(std::string{std::istreambuf_iterator<char>(stream), {}});
  std::size_t answered = 0;
  for (const auto& [type, names] : *types.as<Json::Object>()) {
    std::istringstream words(*names.as<std::string>());
    for (std::string name; words >> name; ++answered) {
      const auto key = [&name](const char* end) { return name + "." + end; };
      const Model model = model_of(
          file_of({word("general.architecture", name), whole(key("block_count"), 8), whole(key("context_length"), 64),
                   whole(key("embedding_length"), 256), whole(key("attention.head_count"), 4),
                   whole(key("rope.dimension_count"), 64), whole(key("attention.relative_buckets_count"), 32)}));
      EXPECT_FALSE(model.groups.empty()) << name;
      bool rotates = false;
      for (const LayerGroup& group : model.groups) {
        const auto* const rope = group.scheme ? std::get_if<Rope>(&*group.scheme) : nullptr;
        if (rope == nullptr) continue;
        rotates = true;
        EXPECT_EQ(rope->layout, type == "NORM" ? PairLayout::kInterleaved : PairLayout::kHalves) << name;
      }
      const bool is_never_used = name == "bert" || name == "starcoder";
      EXPECT_EQ(rotates, type != "NONE" && !is_never_used) << name;
    }
  }
  EXPECT_GE(answered, 140u);
}

TEST(GgufModel, MptHasSlopesOnlyWithABias) {
  EXPECT_EQ(groups_of("mpt", {number("mpt.attention.max_alibi_bias", 8.0F)}), "alibi 0-7");
  // a head without tensors: a model without ALiBi has a table; with tensors, the file says so
  EXPECT_EQ(groups_of("mpt", {}), "learned 0-7");
  EXPECT_EQ(groups_of("mpt", {number("mpt.attention.max_alibi_bias", 0.0F)}), "learned 0-7");
  EXPECT_EQ(groups_of("jais", {}), "none 0-7");
  EXPECT_EQ(model_of(file_of({word("general.architecture", "mpt"), whole("mpt.block_count", 1),
                              whole("mpt.context_length", 2), whole("mpt.embedding_length", 2)},
                             "token_embd.weight", {1, 2, 3, 4}))
                .groups[0]
                .scheme,
            Scheme(None{}));
  const Model model = model_of(
      file_of({word("general.architecture", "mpt"), whole("mpt.block_count", 1), whole("mpt.context_length", 2),
               whole("mpt.embedding_length", 2), number("mpt.attention.max_alibi_bias", 0.0F)},
              "position_embd.weight", {1, 2, 3, 4}));
  EXPECT_EQ(model.groups[0].scheme, Scheme(Learned{.rows = 2, .width = 2}));
}

// llama.cpp b21e4de7, llama4.cpp:145: the step of unrotated layers is then the number of layers.
TEST(GgufModel, Llama4WithoutWindowsDoesNotRotateItsLastLayer) {
  EXPECT_EQ(groups_of("llama4", {}), "rope 0-2,4-6, none 3,7");
  EXPECT_EQ(groups_of("llama4", {whole("llama4.attention.sliding_window", 0)}), "rope 0-6, none 7");
  const Model model = small_model("llama4", {whole("llama4.attention.sliding_window", 0)});
  EXPECT_EQ(model.warnings.size(), 1u);
  EXPECT_EQ(layer(model, 7).attention.temperature, std::nullopt);
  // smollm3.cpp:5 has no such rule
  EXPECT_EQ(groups_of("smollm3", {whole("smollm3.attention.sliding_window", 0)}), "rope 0-2,4-6, none 3,7");
}

// llama.cpp b21e4de7, cohere2moe.cpp:179
TEST(GgufModel, ADensePrefixRotates) {
  const std::vector<std::string> window = {whole("cohere2moe.attention.sliding_window", 128)};
  EXPECT_EQ(groups_of("cohere2moe", window), "rope 0-2,4-6, none 3,7");
  EXPECT_EQ(groups_of("cohere2moe", {window[0], whole("cohere2moe.leading_dense_block_count", 4)}),
            "rope 0-2,4-6, rope 3, none 7");
}

TEST(GgufModel, BucketsThatAreNotGivenAreThoseOfT5) {
  const Model model = small_model("t5encoder", {});
  EXPECT_EQ(model.groups[0].scheme, Scheme(T5{.heads = 4, .buckets = 32}));
  EXPECT_EQ(model.assumed.size(), 1u);
  const Model given = small_model("t5encoder", {whole("t5encoder.attention.relative_buckets_count", 64)});
  EXPECT_EQ(given.groups[0].scheme, Scheme(T5{.heads = 4, .buckets = 64}));
  EXPECT_TRUE(given.assumed.empty());
}

TEST(GgufModel, FactorsWithoutATypeAreLinear) {
  const auto scaling = [](const std::vector<std::string>& more) {
    return std::get<Rope>(*model_of(file_of(llama(more))).groups[0].scheme).scaling;
  };
  EXPECT_EQ(scaling({number("llama.rope.scaling.factor", 4.0F)}), RopeScaling(LinearScaling{.factor = 4}));
  EXPECT_EQ(scaling({number("llama.rope.scale_linear", 8.0F)}), RopeScaling(LinearScaling{.factor = 8}));
  EXPECT_EQ(scaling({number("llama.rope.scaling.factor", 0.0F)}), RopeScaling(NoScaling{}));
  EXPECT_EQ(scaling({word("llama.rope.scaling.type", "none"), number("llama.rope.scaling.factor", 4.0F)}),
            RopeScaling(NoScaling{}));
}

TEST(GgufModel, MistralsFactorIsNotATenth) {
  const Model model =
      model_of(file_of({word("general.architecture", "mistral3"), whole("mistral3.block_count", 1),
                        whole("mistral3.context_length", 262144), whole("mistral3.rope.dimension_count", 128),
                        word("mistral3.rope.scaling.type", "yarn"), number("mistral3.rope.scaling.factor", 16.0F),
                        whole("mistral3.rope.scaling.original_context_length", 16384),
                        number("mistral3.rope.scaling.yarn_log_multiplier", 1.0F)}));
  EXPECT_NEAR(prepare(std::get<Rope>(*model.groups[0].scheme)).magnitude, 1.0, 1e-12);
  EXPECT_EQ(prepare(std::get<Rope>(*model.groups[0].scheme)).softmax_factor, 1.0);
}

TEST(GgufModel, BiasesAreNamed) {
  const Model model = model_of(file_of({word("general.architecture", "bloom"), whole("bloom.block_count", 2),
                                        whole("bloom.attention.head_count", 16)}));
  EXPECT_EQ(model.groups[0].scheme_name, "alibi");
}

TEST(GgufModel, RefusesInOneLine) {
  const auto with = [](const std::string& more) {
    return file_of({word("general.architecture", "llama"), whole("llama.rope.dimension_count", 128), more});
  };
  const float nan = std::nanf("");
  expect_refused(
      {{"no architecture", file_of({whole("x", 1)}),
        "general.architecture is missing, which says how pairs are laid out"},
       {"unknown", file_of({word("general.architecture", "lama")}),
        "general.architecture \"lama\" is unknown (did you mean 'llama'?)"},
       {"base 0", with(number("llama.rope.freq_base", 0)), "llama.rope.freq_base must be a number above 0 but is 0"},
       {"base -1", with(number("llama.rope.freq_base", -1)),
        "llama.rope.freq_base must be a number above 0 but is -1"},
       {"base NaN", with(number("llama.rope.freq_base", nan)),
        "llama.rope.freq_base must be a number above 0 but is nan"},
       {"base inf", with(number("llama.rope.freq_base", INFINITY)),
        "llama.rope.freq_base must be a number above 0 but is inf"},
       {"base 1", with(number("llama.rope.freq_base", 1)), "llama.rope.freq_base must be above 1 but is 1"},
       {"odd", file_of({word("general.architecture", "llama"), whole("llama.rope.dimension_count", 7)}),
        "llama.rope.dimension_count must be even and from 2 to 65536 but is 7"},
       {"no dims", file_of({word("general.architecture", "llama"), whole("llama.rope.dimension_count", 0)}),
        "llama.rope.dimension_count must be even and from 2 to 65536 but is 0"},
       {"many dims",
        file_of({word("general.architecture", "llama"), whole("llama.rope.dimension_count", 0xFFFFFFFE)}),
        "llama.rope.dimension_count must be even and from 2 to 65536 but is 4294967294"},
       {"length", with(entry("llama.context_length", 10, stored(std::uint64_t{1} << 63))),
        "llama.context_length must be an integer from 0 to 2^53 but is another value"},
       {"scaling", with(word("llama.rope.scaling.type", "spiral")),
        "llama.rope.scaling.type \"spiral\" is unknown (known are none, linear, yarn, longrope)"},
       {"short list", file_of(llama(), "rope_freqs.weight", {1, 1, 1}),
        "tensor rope_freqs.weight must have 64 f32 numbers, one for each pair, but has 3 of F32"}},
      [](const std::string& file) { model_of(file); });
}

// llama.cpp b21e4de7: jamba.cpp takes layers without key heads for recurrences, deepseek2.cpp the scale of MLA's head.
TEST(GgufModel, LayersSayWhatTheyAre) {
  const auto refusal = [](const Model& model, std::int64_t i) -> std::string {
    try {
      layer(model, i, {.causal = true});
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  };
  const Model mamba = model_of(file_of({word("general.architecture", "mamba"), whole("mamba.block_count", 2)}));
  EXPECT_EQ(refusal(mamba, 1), "layer 1: it has no attention (recurrences instead)");
  const Model jamba = model_of(file_of({word("general.architecture", "jamba"), whole("jamba.block_count", 3),
                                        list("jamba.attention.head_count_kv", {0, 4, 0})}));
  EXPECT_EQ(refusal(jamba, 0), "layer 0: it has no attention (linear_attention instead)");
  EXPECT_EQ(refusal(jamba, 1), "accepted");
  const Model deepseek = model_of(
      file_of({word("general.architecture", "deepseek2"), whole("deepseek2.block_count", 1),
               whole("deepseek2.rope.dimension_count", 64), number("deepseek2.rope.freq_base", 10000.0F),
               whole("deepseek2.attention.key_length", 576), whole("deepseek2.attention.key_length_mla", 256)}));
  EXPECT_EQ(layer(deepseek, 0).attention.scale, 1.0 / 16);
  const Model cohere2 =
      model_of(file_of({word("general.architecture", "cohere2"), whole("cohere2.block_count", 4),
                        whole("cohere2.rope.dimension_count", 64), number("cohere2.rope.freq_base", 10000.0F)}));
  EXPECT_EQ(refusal(cohere2, 0),
            "layer 0: its attention is not computed: it slides over a window that the file does not give");
  EXPECT_EQ(refusal(cohere2, 3), "accepted");
}

}  // namespace
}  // namespace posenc::gguf_model_test
