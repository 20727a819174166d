// From a config to attention: tiny random layers of model families, each against a reference in double that is written
// here from the family's own formulas (transformers 5.16) and shares no code with the library. A prompt, then decoding
// steps through a paged cache, in f32 and bf16, on every backend and SIMD target.

#include "posenc/layer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "attention/oracle.h"
#include "backends.h"
#include "posenc/cache.h"
#include "posenc/error.h"

namespace posenc::layer_test {
namespace {

using tests::Heads;
using tests::random_heads;

constexpr std::int64_t kTokens = 24, kHeads = 4, kKeyHeads = 2, kFeatures = 16;

// What a layer does, by hand.
struct Reference {
  std::vector<double> frequencies = {};  // radians per position of each pair; none: nothing is rotated
  std::int64_t first = 0;                // first rotated feature
  bool reads_interleaved = false, writes_interleaved = false;
  double magnitude = 1;
  std::vector<int> axes = {};  // of each pair; none: one axis
  std::function<double(std::int64_t token, int axis)> position = [](std::int64_t t, int) {
    return static_cast<double>(t);
  };
  double scale = 1 / std::sqrt(16.0);
  double softcap = 0;
  bool causal = true;
  std::int64_t window = 0, chunk = 0;
  std::vector<double> sinks = {};
  std::function<double(std::int64_t p)> factor = [](std::int64_t) { return 1.0; };
  std::function<double(std::int64_t h, std::int64_t query, std::int64_t key)> bias = [](std::int64_t, std::int64_t,
                                                                                        std::int64_t) { return 0.0; };

  std::vector<double> rotated(std::vector<double> x, std::int64_t token) const {
    const auto pairs = static_cast<std::int64_t>(frequencies.size());
    std::vector<double> y = x;
    for (std::int64_t i = 0; i < pairs; ++i) {
      const int axis = axes.empty() ? 0 : axes[static_cast<std::size_t>(i)];
      const double angle = position(token, axis) * frequencies[static_cast<std::size_t>(i)];
      const auto place = [&](bool interleaved, std::int64_t half) {
        return static_cast<std::size_t>(first + (interleaved ? 2 * i + half : i + half * pairs));
      };
      const double a = x[place(reads_interleaved, 0)], b = x[place(reads_interleaved, 1)];
      y[place(writes_interleaved, 0)] = magnitude * (a * std::cos(angle) - b * std::sin(angle));
      y[place(writes_interleaved, 1)] = magnitude * (b * std::cos(angle) + a * std::sin(angle));
    }
    return y;
  }
  bool sees(std::int64_t query, std::int64_t key) const {
    if (causal && key > query) return false;
    if (window > 0 && std::abs(query - key) >= window) return false;
    return chunk == 0 || query / chunk == key / chunk;
  }
};

template <class T> std::vector<double> row_of(const Heads<T>& x, std::int64_t h, std::int64_t t) {
  std::vector<double> row;
  for (std::int64_t f = 0; f < x.features; ++f) row.push_back(x.real(0, h, t, f));
  return row;
}

// The output of one query; `rounds`: rotated keys lie in a cache of T.
template <class T> std::vector<double> answer_of(const Reference& layer, const Heads<T>& q, const Heads<T>& k,
                                                 const Heads<T>& v, std::int64_t h, std::int64_t query, bool rounds) {
  const std::vector<double> q_row = layer.rotated(row_of(q, h, query), query);
  const std::int64_t g = h / (q.heads / k.heads);
  double total = layer.sinks.empty() ? 0.0 : std::exp(layer.sinks[static_cast<std::size_t>(h)]);
  std::vector<double> out(static_cast<std::size_t>(v.features), 0.0);
  for (std::int64_t key = 0; key < k.tokens; ++key) {
    if (!layer.sees(query, key)) continue;
    std::vector<double> k_row = layer.rotated(row_of(k, g, key), key);
    double score = 0;
    for (std::size_t f = 0; f < q_row.size(); ++f) {
      score += q_row[f] * (rounds ? numerics::widen(numerics::narrow<T>(k_row[f])) : k_row[f]);
    }
    score *= layer.scale * layer.factor(query);
    if (layer.softcap > 0) score = layer.softcap * std::tanh(score / layer.softcap);
    const double weight = std::exp(score + layer.bias(h, query, key));
    total += weight;
    for (std::int64_t f = 0; f < v.features; ++f) {
      out[static_cast<std::size_t>(f)] += weight * v.real(0, g, key, f);
    }
  }
  for (double& x : out) x /= total;
  return out;
}

struct Family {
  std::string config;
  std::int64_t layer = 0;
  LayerInputs inputs = {};
  Reference reference = {};
  std::vector<std::int64_t> ids = {};  // [axes, tokens], where a position has several axes
  int axes = 1;
};

template <class T> struct Tensors {
  Heads<T> q = random_heads<T>(1, kHeads, kTokens, kFeatures, 1),
           k = random_heads<T>(1, kKeyHeads, kTokens, kFeatures, 2), v = random_heads<T>(1, kKeyHeads, kTokens, 8, 3);
  Tensors() {
    for (T& x : q.values) x = numerics::narrow<T>(3 * numerics::widen(x));  // so that scores matter
  }
};

// What rounding may add. f32: the bound of attention, for rotated q and k of up to 4. bf16: results below 1 in size are
// rounded to within 2^-9. A cache of bf16 may also hold a rotated key's feature on the other side of a tie: 2^-8 of 1.5,
// times q of 4 and a scale of 1/4, moves a score by 6e-3 and a weight by half of that.
template <class T> constexpr double room_of(bool has_cache) {
  if (sizeof(T) == 4) return 5e-6;
  return 0x1p-9 + 5e-6 + (has_cache ? 3e-3 : 0.0);
}

template <class T> Heads<T> tokens_of(const Heads<T>& x, std::int64_t begin, std::int64_t end) {
  Heads<T> part(1, x.heads, end - begin, x.features);
  for (std::int64_t h = 0; h < x.heads; ++h) {
    for (std::int64_t t = begin; t < end; ++t) {
      for (std::int64_t f = 0; f < x.features; ++f) part.at(0, h, t - begin, f) = x.values[x.index(0, h, t, f)];
    }
  }
  return part;
}

// The ids of tokens `begin` to `end`, [axes, tokens].
std::vector<std::int64_t> ids_of(const Family& family, std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> ids;
  for (int axis = 0; axis < family.axes; ++axis) {
    for (std::int64_t t = begin; t < end; ++t)
      ids.push_back(family.ids[static_cast<std::size_t>(axis * kTokens + t)]);
  }
  return ids;
}

// Tokens `begin` on of a sequence of `length` tokens.
template <class T> void expect_rows(const Family& family, const Tensors<T>& x, const Heads<T>& out,
                                    std::int64_t begin, std::int64_t length, bool is_rounded, double room) {
  const Heads<T> k = tokens_of(x.k, 0, length), v = tokens_of(x.v, 0, length);
  for (std::int64_t h = 0; h < kHeads; ++h) {
    for (std::int64_t t = begin; t < begin + out.tokens; ++t) {
      const std::vector<double> want = answer_of(family.reference, x.q, k, v, h, t, is_rounded);
      for (std::int64_t f = 0; f < v.features; ++f) {
        ASSERT_NEAR(out.real(0, h, t - begin, f), want[static_cast<std::size_t>(f)], room)
            << "token " << t << " of " << length;
      }
    }
  }
}

// The whole sequence at once, without a cache.
template <class T> void expect_sequence(const Family& family, const PreparedLayer& layer, const Tensors<T>& x) {
  AttentionOptions options = layer.attention;
  if (family.axes > 1) {
    options.query_positions = options.key_positions = Positions{.ids = family.ids, .axes = family.axes};
  }
  Heads<T> out(1, kHeads, kTokens, x.v.features);
  attention(out.view(), x.q.view(), x.k.view(), x.v.view(), options);
  expect_rows(family, x, out, 0, kTokens, false, room_of<T>(false));
}

// A cache in pages, as an engine has it: tokens are appended, keys rotated once as they come, and attention reads the
// pages. A prompt first (the whole sequence for an encoder), then one token at a time.
template <class T> void expect_paged(const Family& family, const PreparedLayer& layer, const Tensors<T>& x) {
  constexpr std::int64_t kPage = 5, kPages = 7;
  const std::vector<std::int32_t> table = {3, 0, 6, 2, 5};
  std::vector<T> k_pool(static_cast<std::size_t>(kPages * kPage * kKeyHeads * kFeatures)),
      v_pool(static_cast<std::size_t>(kPages * kPage * kKeyHeads * x.v.features));
  const TensorView k_cache = swap_axes(view(k_pool.data(), {kPages, kPage, kKeyHeads, kFeatures}), 1, 2),
                   v_cache = swap_axes(view(v_pool.data(), {kPages, kPage, kKeyHeads, x.v.features}), 1, 2);
  const auto* const rotation = std::get_if<Rotation>(&layer.attention.position);
  const auto step = [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> slots, ids = ids_of(family, begin, family.axes > 1 ? end : begin);
    for (std::int64_t t = begin; t < end; ++t) {
      slots.push_back(table[static_cast<std::size_t>(t / kPage)] * kPage + t % kPage);
    }
    const Positions places = family.axes > 1 ? Positions{.ids = ids, .axes = family.axes} : Positions{.first = begin};
    const Heads<T> k = tokens_of(x.k, begin, end), v = tokens_of(x.v, begin, end), q = tokens_of(x.q, begin, end);
    if (rotation == nullptr) {
      copy_into(k_cache, slots, k.view());
    } else {
      rotate_into(k_cache, slots, k.view(), places, *rotation);
    }
    copy_into(v_cache, slots, v.view());
    const std::vector<std::int64_t> lengths = {end};
    AttentionOptions options = layer.attention;
    options.key_lengths = lengths;
    options.block_table = table;
    options.keys_are_rotated = rotation != nullptr;
    if (family.axes > 1) options.query_positions = places;
    Heads<T> out(1, kHeads, end - begin, x.v.features);
    attention(out.view(), q.view(), k_cache, v_cache, options);
    expect_rows(family, x, out, begin, end, rotation != nullptr, room_of<T>(rotation != nullptr));
  };
  const std::int64_t prompt = family.reference.causal ? kTokens - 4 : kTokens;
  step(0, prompt);
  for (std::int64_t t = prompt; t < kTokens; ++t) step(t, t + 1);
}

void expect_right(const Family& family) {
  SCOPED_TRACE(family.config);
  const PreparedLayer made = layer(read_model(family.config), family.layer, family.inputs);
  tests::for_each_engine([&] {
    expect_sequence<float>(family, made, {});
    expect_sequence<BFloat16>(family, made, {});
    expect_paged<float>(family, made, {});
    expect_paged<BFloat16>(family, made, {});
  });
}

// base^(−2i/dims)
std::vector<double> plain(double base, int dims) {
  std::vector<double> all;
  for (int i = 0; i < dims / 2; ++i) all.push_back(std::pow(base, -2.0 * i / dims));
  return all;
}

std::vector<double> yarn(double base, int dims, double factor, double original, bool truncates) {
  const auto correction = [&](double turns) {
    return dims * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double low = correction(32), high = correction(1);
  if (truncates) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, dims - 1.0);
  std::vector<double> all = plain(base, dims);
  for (int i = 0; i < dims / 2; ++i) {
    const double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
    double& value = all[static_cast<std::size_t>(i)];
    value = value / factor * ramp + value * (1 - ramp);
  }
  return all;
}

// What configs share: 4 heads of 16 features.
std::string config(const std::string& type, const std::string& more) {
  return fmt::format(R"({{"model_type":"{}","hidden_size":64,"head_dim":16,"num_attention_heads":4,)"
                     R"("num_key_value_heads":2,"max_position_embeddings":4096,{}}})",
                     type, more);
}

TEST(Layer, Llama3) {
  Reference reference{.frequencies = plain(500000, 16)};
  for (double& w : reference.frequencies) {  // Llama3RotaryEmbedding: factor 8, 1, 4, trained with 16
    const double length = 2 * std::numbers::pi / w;
    if (length < 16.0 / 4) continue;
    const double smooth = length > 16.0 ? 0.0 : (16.0 / length - 1) / (4 - 1);
    w = (1 - smooth) * w / 8 + smooth * w;
  }
  expect_right({.config = config("llama", R"("num_hidden_layers":2,"rope_theta":500000.0,"rope_scaling":{
                   "rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
                   "original_max_position_embeddings":16})"),
                .layer = 1,
                .reference = reference});
}

TEST(Layer, MistralHasAWindow) {
  expect_right({.config = config("mistral", R"("num_hidden_layers":2,"rope_theta":10000.0,"sliding_window":7)"),
                .reference = {.frequencies = plain(10000, 16), .window = 7}});
}

TEST(Layer, Gemma2CapsScores) {
  const std::string all = config("gemma2", R"("num_hidden_layers":2,"rope_theta":10000.0,"sliding_window":6,
      "attn_logit_softcapping":1.5,"query_pre_attn_scalar":24)");
  Reference reference{.frequencies = plain(10000, 16), .scale = 1 / std::sqrt(24.0), .softcap = 1.5, .window = 6};
  expect_right({.config = all, .layer = 0, .reference = reference});
  reference.window = 0;
  expect_right({.config = all, .layer = 1, .reference = reference});
}

TEST(Layer, Gemma3HasLocalAndGlobalLayers) {
  const std::string all = config("gemma3_text", R"("num_hidden_layers":6,"rope_theta":1000000.0,
      "rope_local_base_freq":10000.0,"rope_scaling":{"rope_type":"linear","factor":8.0},"sliding_window":6,
      "sliding_window_pattern":6,"query_pre_attn_scalar":24)");
  Reference reference{.frequencies = plain(10000, 16), .scale = 1 / std::sqrt(24.0), .window = 6};
  expect_right({.config = all, .layer = 4, .reference = reference});
  reference.window = 0;
  reference.frequencies = plain(1000000, 16);
  for (double& w : reference.frequencies) w /= 8;
  expect_right({.config = all, .layer = 5, .reference = reference});
}

TEST(Layer, GptOssHasSinks) {
  const std::string all = config("gpt_oss", R"("num_hidden_layers":2,"rope_theta":150000.0,"sliding_window":5,
      "layer_types":["sliding_attention","full_attention"],"rope_scaling":{"rope_type":"yarn","factor":32.0,
      "beta_fast":32.0,"beta_slow":1.0,"truncate":false,"original_max_position_embeddings":4096})");
  const std::vector<float> sinks = {0.5f, -1.0f, 2.0f, 0.0f};
  Reference reference{.frequencies = yarn(150000, 16, 32, 4096, false),
                      .magnitude = 0.1 * std::log(32.0) + 1,
                      .window = 5,
                      .sinks = {0.5, -1.0, 2.0, 0.0}};
  const LayerInputs inputs{.sinks = view(sinks.data(), {kHeads})};
  expect_right({.config = all, .layer = 0, .inputs = inputs, .reference = reference});
  reference.window = 0;
  expect_right({.config = all, .layer = 1, .inputs = inputs, .reference = reference});
}

TEST(Layer, Llama4HasChunksAndTemperature) {
  const std::string all = config("llama4_text", R"("num_hidden_layers":4,"rope_theta":500000.0,"rope_scaling":null,
      "attention_chunk_size":8,"floor_scale":4,"attn_scale":0.1,"attn_temperature_tuning":true)");
  expect_right(
      {.config = all,
       .layer = 2,
       .reference = {
           .frequencies = plain(500000, 16), .reads_interleaved = true, .writes_interleaved = true, .chunk = 8}});
  expect_right({.config = all, .layer = 3, .reference = {.factor = [](std::int64_t p) {
                                             return 1 +
                                                    0.1 * std::log1p(std::floor(static_cast<double>(p + 1) / 4.0));
                                           }}});
}

// T5's buckets, as its _relative_position_bucket.
std::int64_t t5_bucket(std::int64_t key_minus_query, bool is_bidirectional) {
  std::int64_t buckets = 32, first = 0, distance = -std::min<std::int64_t>(key_minus_query, 0);
  if (is_bidirectional) {
    buckets = 16;
    first = key_minus_query > 0 ? 16 : 0;
    distance = std::abs(key_minus_query);
  }
  const std::int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const double log = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                     std::log(20.0 / static_cast<double>(exact));
  return first + std::min(exact + static_cast<std::int64_t>(log * static_cast<double>(buckets - exact)), buckets - 1);
}

TEST(Layer, T5HasTwoHalves) {
  const std::string all = R"({"model_type":"t5","num_heads":4,"d_model":64,"d_kv":16,"num_layers":2,
      "num_decoder_layers":3,"relative_attention_num_buckets":32,"relative_attention_max_distance":20})";
  std::vector<float> weights;
  for (int i = 0; i < 32 * 4; ++i) weights.push_back(static_cast<float>(std::sin(0.7 * i)));
  const LayerInputs encoder{.part = "encoder", .now = {.weights = view(weights.data(), {32, 4})}},
      decoder{.part = "decoder", .now = encoder.now};
  const auto bias = [&weights](bool is_bidirectional) {
    return [&weights, is_bidirectional](std::int64_t h, std::int64_t query, std::int64_t key) {
      return static_cast<double>(weights[static_cast<std::size_t>(4 * t5_bucket(key - query, is_bidirectional) + h)]);
    };
  };
  expect_right(
      {.config = all, .layer = 1, .inputs = encoder, .reference = {.scale = 1, .causal = false, .bias = bias(true)}});
  expect_right({.config = all, .layer = 2, .inputs = decoder, .reference = {.scale = 1, .bias = bias(false)}});
}

TEST(Layer, Qwen2VlHasThreeAxes) {
  Family family{.config = config("qwen2_vl", R"("num_hidden_layers":1,"rope_theta":1000000.0,
                    "rope_scaling":{"type":"mrope","mrope_section":[2,3,3]})"),
                .reference = {.frequencies = plain(1000000, 16), .axes = {0, 0, 1, 1, 1, 2, 2, 2}},
                .axes = 3};
  // text, an image of 3 x 4, text
  for (int axis = 0; axis < 3; ++axis) {
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const bool is_image = t >= 5 && t < 17;
      const std::int64_t patch = t - 5;
      family.ids.push_back(t < 5       ? t
                           : !is_image ? t - 17 + 9
                           : axis == 0 ? 5
                           : axis == 1 ? 5 + patch / 4
                                       : 5 + patch % 4);
    }
  }
  family.reference.position = [ids = family.ids](std::int64_t t, int axis) {
    return static_cast<double>(ids[static_cast<std::size_t>(axis * kTokens + t)]);
  };
  expect_right(family);
}

// Families whose YaRN has mscale_all_dim: on the softmax in DeepSeek and its kin, not in Ministral 3. Applied once.
TEST(Layer, TheSoftmaxFactorIsAppliedOnce) {
  const auto mla = [](const std::string& type, const std::string& more) {
    return config(type, R"("num_hidden_layers":1,"rope_theta":10000.0,"qk_rope_head_dim":8,"qk_nope_head_dim":8,
        "v_head_dim":8,"kv_lora_rank":16,"rope_scaling":{"rope_type":"yarn","type":"yarn","factor":40.0,"mscale":1.0,
        "mscale_all_dim":1.0,"original_max_position_embeddings":4096)" +
                            more + "}");
  };
  const double gain = 0.1 * std::log(40.0) + 1;
  Reference deepseek{.frequencies = yarn(10000, 8, 40, 4096, true),
                     .first = 8,
                     .reads_interleaved = true,
                     .scale = gain * gain / std::sqrt(16.0)};
  expect_right({.config = mla("deepseek_v3", ""), .reference = deepseek});
  expect_right({.config = mla("kimi_k2", ""), .reference = deepseek});
  Reference mistral4 = deepseek;
  mistral4.factor = [](std::int64_t p) { return 1 + 0.1 * std::log1p(std::floor(static_cast<double>(p) / 4096.0)); };
  expect_right({.config = mla("mistral4", R"(,"llama_4_scaling_beta":0.1)"), .reference = mistral4});
  Reference interleaved = deepseek;
  interleaved.writes_interleaved = true;
  expect_right({.config = mla("deepseek_v2", ""), .reference = interleaved});
  Reference halves = deepseek;
  halves.reads_interleaved = false;
  expect_right({.config = mla("minicpm3", ""), .reference = halves});
  expect_right({.config = config("ministral3", R"("num_hidden_layers":1,"rope_parameters":{"rope_type":"yarn",
                    "rope_theta":10000.0,"factor":40.0,"mscale":1.0,"mscale_all_dim":1.0,"llama_4_scaling_beta":0.3,
                    "original_max_position_embeddings":8})"),
                .reference = {.frequencies = yarn(10000, 16, 40, 8, true), .factor = [](std::int64_t p) {
                                return 1 + 0.3 * std::log1p(std::floor(static_cast<double>(p) / 8.0));
                              }}});
}

TEST(Layer, ModernBertSeesHalfItsWindowOnEitherSide) {
  const std::string all = config("modernbert", R"("num_hidden_layers":3,"global_attn_every_n_layers":3,
      "local_attention":8,"global_rope_theta":160000.0,"local_rope_theta":10000.0)");
  expect_right(
      {.config = all, .layer = 1, .reference = {.frequencies = plain(10000, 16), .causal = false, .window = 5}});
  expect_right({.config = all, .layer = 0, .reference = {.frequencies = plain(160000, 16), .causal = false}});
}

TEST(Layer, AddedVectorsStayOutOfAttention) {
  const Model model = read_model(R"({"model_type":"roberta","hidden_size":8,"num_attention_heads":2,
      "num_hidden_layers":2,"max_position_embeddings":34,"pad_token_id":1})");
  const std::vector<float> table(34 * 8, 0.5f);
  const PreparedLayer made = layer(model, 1, {.now = {.weights = view(table.data(), {34, 8})}});
  EXPECT_TRUE(std::holds_alternative<Nothing>(made.attention.position));
  ASSERT_TRUE(made.addition.has_value());
  EXPECT_EQ(made.first_position, 2);
  EXPECT_FALSE(made.attention.causal);
  EXPECT_FALSE(layer(model, 1).addition.has_value());
  EXPECT_FALSE(layer(model, 1).notes.empty());
}

std::string refusal_of(const std::string& json, std::int64_t i, const LayerInputs& inputs = {}) {
  try {
    layer(read_model(json), i, inputs);
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Layer, SaysWhatItCannotDo) {
  const std::string llama = config("llama", R"("num_hidden_layers":2)");
  EXPECT_EQ(refusal_of(llama, 2), "layer 2: the model does not have it");
  EXPECT_EQ(refusal_of(llama, -1), "layer -1: the model does not have it");
  EXPECT_EQ(refusal_of(llama, 0, {.part = "vision"}), "layer 0 of the vision: the model has no such part");
  EXPECT_EQ(refusal_of(llama, 0, {.causal = false}), "layer 0: its attention is causal");
  const std::vector<float> sinks = {1.0f};
  EXPECT_EQ(refusal_of(llama, 0, {.sinks = view(sinks.data(), {1})}),
            "layer 0: it has no sinks, but some were given");
  EXPECT_EQ(refusal_of(config("gpt_oss", R"("num_hidden_layers":2)"), 0),
            "layer 0: it has sinks: their trained logits are missing, [heads]");
  const std::string t5 = R"({"model_type":"t5","num_heads":4,"d_model":64,"d_kv":16,"num_layers":2,
      "num_decoder_layers":3})";
  EXPECT_EQ(refusal_of(t5, 0), "layer 0: several parts have it: choose one of encoder, decoder");
  EXPECT_EQ(refusal_of(t5, 2, {.part = "encoder"}), "layer 2 of the encoder: the model does not have it");
  EXPECT_TRUE(refusal_of(t5, 0, {.part = "decoder"}).find("t5: ") == 0);  // its table is missing
  EXPECT_EQ(refusal_of(config("qwen3_next", R"("num_hidden_layers":4)"), 0),
            "layer 0: linear_attention is no attention");
}

}  // namespace
}  // namespace posenc::layer_test
