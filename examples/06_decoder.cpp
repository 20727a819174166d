// 06: a decoder with a paged KV cache: a prompt is read at once, then one token after another. Keys are rotated when they
// come, straight into their slots; every step gives what attention over the whole sequence gives.
#include <posenc/posenc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {

constexpr std::int64_t kHeads = 4, kKeyHeads = 2, kFeatures = 32, kTokens = 40, kPrompt = 25, kPage = 16, kPages = 8;

// The projections of a model would make these: [tokens, heads, features].
std::vector<float> projected(std::int64_t heads, double step) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < kTokens * heads * kFeatures; ++i) {
    x.push_back(static_cast<float>(std::sin(step * static_cast<double>(i))));
  }
  return x;
}
posenc::ConstTensorView tokens_of(const std::vector<float>& x, std::int64_t heads, std::int64_t first,
                                  std::int64_t count) {
  return posenc::view(x.data() + first * heads * kFeatures, {1, count, heads, kFeatures});
}

}  // namespace

int main() {
  using namespace posenc;
  const Model model = read_model(R"({"model_type": "llama", "hidden_size": 128, "num_hidden_layers": 1,
      "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 131072, "rope_theta": 500000.0,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192}})");
  AttentionOptions options = layer(model, 0).attention;
  const Rotation& rope = std::get<Rotation>(options.position);
  const std::vector<float> q = projected(kHeads, 0.71), k = projected(kKeyHeads, 0.37),
                           v = projected(kKeyHeads, 0.113);

  // What the steps must give: the whole sequence at once.
  std::vector<float> whole(q.size()), stepwise(q.size());
  AttentionOptions at_once = options;
  at_once.axes = Axes::kBshd;
  attention(view(whole.data(), {1, kTokens, kHeads, kFeatures}), tokens_of(q, kHeads, 0, kTokens),
            tokens_of(k, kKeyHeads, 0, kTokens), tokens_of(v, kKeyHeads, 0, kTokens), at_once);

  // Pools of pages, [pages, page, heads, features], and the pages that this sequence was given.
  std::vector<float> k_pool(kPages * kPage * kKeyHeads * kFeatures), v_pool = k_pool;
  const TensorView k_cache = heads_first(view(k_pool.data(), {kPages, kPage, kKeyHeads, kFeatures}), Axes::kBshd),
                   v_cache = heads_first(view(v_pool.data(), {kPages, kPage, kKeyHeads, kFeatures}), Axes::kBshd);
  const std::vector<std::int32_t> block_table = {5, 2, 7};
  options.keys_are_rotated = true;
  options.block_table = block_table;

  const auto step = [&](std::int64_t first, std::int64_t count) {
    std::vector<std::int64_t> slots;
    for (std::int64_t t = first; t < first + count; ++t) {
      slots.push_back(block_table[static_cast<std::size_t>(t / kPage)] * kPage + t % kPage);
    }
    rotate_into(k_cache, slots, heads_first(tokens_of(k, kKeyHeads, first, count), Axes::kBshd), {.first = first},
                rope);
    copy_into(v_cache, slots, heads_first(tokens_of(v, kKeyHeads, first, count), Axes::kBshd));
    const std::vector<std::int64_t> lengths = {first + count};
    options.key_lengths = lengths;
    const TensorView out = view(stepwise.data() + first * kHeads * kFeatures, {1, count, kHeads, kFeatures});
    attention(heads_first(out, Axes::kBshd), heads_first(tokens_of(q, kHeads, first, count), Axes::kBshd), k_cache,
              v_cache, options);
  };
  step(0, kPrompt);
  for (std::int64_t t = kPrompt; t < kTokens; ++t) step(t, 1);

  float worst = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) worst = std::max(worst, std::fabs(whole[i] - stepwise[i]));
  std::printf("prompt of %d tokens, then %d steps: largest difference %s 1e-5\n", static_cast<int>(kPrompt),
              static_cast<int>(kTokens - kPrompt), worst < 1e-5f ? "below" : "NOT below");
  return worst < 1e-5f ? 0 : 1;
}
