// 06: a decoder with a paged KV cache and continuous batching. Three sequences share one pool of pages. Each step packs chunks
// of prompts and single decoding tokens into one call. Keys are rotated once, when they are written to their slots. At the
// end, every result is compared with attention over the whole sequence.
#include <posenc/posenc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

namespace {

constexpr std::int64_t kHeads = 4, kKeyHeads = 2, kFeatures = 32, kPage = 16, kPages = 12, kPagesOfOne = 4;

struct Sequence {
  std::int64_t tokens, prompt, done = 0;
  std::vector<float> q = {}, k = {}, v = {};  // [tokens, heads, features]; in a model, the projections compute these
  std::vector<float> out = {};
};

std::vector<float> projected(std::int64_t tokens, std::int64_t heads, double step) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < tokens * heads * kFeatures; ++i) {
    x.push_back(static_cast<float>(std::sin(step * static_cast<double>(i))));
  }
  return x;
}

// [tokens, heads, features] in memory
posenc::ConstTensorView tokens_of(const std::vector<float>& x, std::int64_t heads) {
  const std::int64_t tokens = std::ssize(x) / (heads * kFeatures);
  return posenc::heads_first(posenc::view(x.data(), {tokens, heads, kFeatures}), posenc::Axes::kThd);
}
posenc::TensorView tokens_of(std::vector<float>& x, std::int64_t heads) {
  const std::int64_t tokens = std::ssize(x) / (heads * kFeatures);
  return posenc::heads_first(posenc::view(x.data(), {tokens, heads, kFeatures}), posenc::Axes::kThd);
}
void append(std::vector<float>& to, const std::vector<float>& from, std::int64_t heads, std::int64_t first,
            std::int64_t count) {
  to.insert(to.end(), from.begin() + first * heads * kFeatures, from.begin() + (first + count) * heads * kFeatures);
}

}  // namespace

int main() {
  using namespace posenc;
  const Model model = read_model(R"({"model_type": "llama", "hidden_size": 128, "num_hidden_layers": 1,
      "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 131072, "rope_theta": 500000.0,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192}})");
  const AttentionOptions of_layer = layer(model, 0).attention;
  const Rotation& rope = std::get<Rotation>(of_layer.position);

  std::vector<Sequence> sequences = {
      {.tokens = 40, .prompt = 25}, {.tokens = 17, .prompt = 9}, {.tokens = 52, .prompt = 40}};
  double step = 0.1;
  for (Sequence& one : sequences) {
    one.q = projected(one.tokens, kHeads, step += 0.17);
    one.k = projected(one.tokens, kKeyHeads, step += 0.17);
    one.v = projected(one.tokens, kKeyHeads, step += 0.17);
  }

  // The pools of one layer, [pages, page size, heads, features] as in vLLM, and the pages of each sequence.
  std::vector<float> k_pool(kPages * kPage * kKeyHeads * kFeatures), v_pool = k_pool;
  const TensorView k_cache = heads_first(view(k_pool.data(), {kPages, kPage, kKeyHeads, kFeatures}), Axes::kBshd),
                   v_cache = heads_first(view(v_pool.data(), {kPages, kPage, kKeyHeads, kFeatures}), Axes::kBshd);
  std::vector<std::int32_t> block_table(sequences.size() * kPagesOfOne, -1),
      free_pages = {7, 2, 11, 5, 0, 9, 3, 8, 1, 10, 4, 6};

  int steps = 0;
  for (; std::any_of(sequences.begin(), sequences.end(), [](const Sequence& s) { return s.done < s.tokens; });
       ++steps) {
    // The scheduler: at most 16 tokens of a prompt, or the next token.
    std::vector<std::int64_t> counts, lengths, slots, ids;
    std::vector<float> q, k, v;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const Sequence& one = sequences[s];
      const std::int64_t left_of_prompt = std::max<std::int64_t>(one.prompt - one.done, 1);
      const std::int64_t count = std::min({left_of_prompt, std::int64_t{16}, one.tokens - one.done});
      const std::span<std::int32_t> pages = std::span(block_table).subspan(s * kPagesOfOne, kPagesOfOne);
      for (std::int64_t i = 0; i * kPage < one.done + count; ++i) {
        std::int32_t& page = pages[static_cast<std::size_t>(i)];
        if (page >= 0) continue;
        page = free_pages.back();
        free_pages.pop_back();
      }
      const auto own = slots_of(pages, kPage, one.done, count);
      slots.insert(slots.end(), own.begin(), own.end());
      for (std::int64_t i = 0; i < count; ++i) ids.push_back(one.done + i);
      append(q, one.q, kHeads, one.done, count);
      append(k, one.k, kKeyHeads, one.done, count);
      append(v, one.v, kKeyHeads, one.done, count);
      counts.push_back(count);
      lengths.push_back(one.done + count);
    }
    // Write keys and values to the cache, then attend over it: all sequences in one call.
    rotate_into(k_cache, slots, tokens_of(std::as_const(k), kKeyHeads), {.ids = ids}, rope);
    copy_into(v_cache, slots, tokens_of(std::as_const(v), kKeyHeads));
    std::vector<float> out(q.size());
    AttentionOptions options = of_layer;
    options.keys_are_rotated = true;
    options.packed = counts;
    options.key_lengths = lengths;
    options.block_table = block_table;
    attention(tokens_of(out, kHeads), tokens_of(std::as_const(q), kHeads), k_cache, v_cache, options);
    for (std::size_t s = 0, first = 0; s < sequences.size(); ++s) {
      append(sequences[s].out, out, kHeads, static_cast<std::int64_t>(first), counts[s]);
      first += static_cast<std::size_t>(counts[s]);
      sequences[s].done += counts[s];
    }
  }

  float worst = 0;
  for (const Sequence& one : sequences) {  // the expected result: attention over each whole sequence
    std::vector<float> whole(one.q.size());
    attention(tokens_of(whole, kHeads), tokens_of(one.q, kHeads), tokens_of(one.k, kKeyHeads),
              tokens_of(one.v, kKeyHeads), of_layer);
    for (std::size_t i = 0; i < whole.size(); ++i) worst = std::max(worst, std::fabs(whole[i] - one.out[i]));
  }
  std::printf("3 sequences in %d steps: largest difference %s 1e-5\n", steps, worst < 1e-5f ? "below" : "NOT below");
  return worst < 1e-5f ? 0 : 1;
}
