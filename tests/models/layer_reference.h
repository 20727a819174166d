#pragma once

// From a config to attention: tiny random layers of model families, each against a reference in double that is written
// from the family's own formulas and shares no code with the library. A prompt, then decoding steps through a paged cache,
// in f32 and bf16, on every backend and SIMD target.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "attention/oracle.h"
#include "backends.h"
#include "posenc/cache.h"
#include "posenc/layer.h"

namespace posenc::layer_reference {

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
  // what vectors by distance add to q·k, of a query's and a key's row; none: nothing
  std::function<double(const std::vector<double>& q, const std::vector<double>& k, std::int64_t query,
                       std::int64_t key)>
      content = {};

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
    if (layer.content) score += layer.content(q_row, k_row, query, key);
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
// rounded to within 2^-9; matrix units add 2^-15 and, where q and k are rotated inside, 2^-14 · scale · |q| · |k|, at most
// 2^-12 for rows of 16 features below 1 and a scale of 1/4 (attention.h). A cache of bf16 may also hold a rotated key's feature on the other side of a tie: 2^-8 of 1.5,
// times q of 4 and a scale of 1/4, moves a score by 6e-3 and a weight by half of that.
template <class T> constexpr double room_of(bool has_cache) {
  if (sizeof(T) == 4) return 5e-6;
  return 0x1p-9 + 0x1p-15 + 0x1p-12 + (has_cache ? 3e-3 : 0.0);
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
inline std::vector<std::int64_t> ids_of(const Family& family, std::int64_t begin, std::int64_t end) {
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
    std::vector<std::int64_t> key_ids;  // of all that the table's pages hold
    for (int axis = 0; axis < family.axes; ++axis) {
      for (std::int64_t t = 0; t < std::ssize(table) * kPage; ++t) {
        key_ids.push_back(family.axes > 1 && t < end ? family.ids[static_cast<std::size_t>(axis * kTokens + t)] : 0);
      }
    }
    if (family.axes > 1 && rotation == nullptr) options.key_positions = {.ids = key_ids, .axes = family.axes};
    Heads<T> out(1, kHeads, end - begin, x.v.features);
    attention(out.view(), q.view(), k_cache, v_cache, options);
    expect_rows(family, x, out, begin, end, rotation != nullptr, room_of<T>(rotation != nullptr));
  };
  const std::int64_t prompt = family.reference.causal ? kTokens - 4 : kTokens;
  step(0, prompt);
  for (std::int64_t t = prompt; t < kTokens; ++t) step(t, t + 1);
}

/// What layer() says where it refuses, or "accepted".
inline std::string refusal_of(const std::string& json, std::int64_t i, const LayerInputs& inputs = {}) {
  try {
    layer(read_model(json), i, inputs);
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

inline void expect_right(const Family& family, const PreparedLayer& made) {
  SCOPED_TRACE(family.config);
  tests::for_each_host_engine([&] {
    expect_sequence<float>(family, made, {});
    expect_sequence<BFloat16>(family, made, {});
    expect_paged<float>(family, made, {});
    expect_paged<BFloat16>(family, made, {});
  });
}

inline void expect_right(const Family& family) {
  expect_right(family, layer(read_model(family.config), family.layer, family.inputs));
}

// base^(−2i/dims)
inline std::vector<double> plain(double base, int dims) {
  std::vector<double> all;
  for (int i = 0; i < dims / 2; ++i) all.push_back(std::pow(base, -2.0 * i / dims));
  return all;
}

// What configs share: 4 heads of 16 features.
inline std::string config(const std::string& type, const std::string& more) {
  return fmt::format(R"({{"model_type":"{}","hidden_size":64,"head_dim":16,"num_attention_heads":4,)"
                     R"("num_key_value_heads":2,"max_position_embeddings":4096,{}}})",
                     type, more);
}

}  // namespace posenc::layer_reference
