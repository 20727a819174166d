// 04: causal attention that applies RoPE itself, with a sliding window and grouped-query attention: two heads of q share
// each head of k and v.
#include <posenc/posenc.h>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  using namespace posenc;
  const std::int64_t heads = 4, key_heads = 2, tokens = 16, features = 32;
  const auto numbers = [](std::int64_t count, double step) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(static_cast<float>(std::sin(step * static_cast<double>(i))));
    return values;
  };
  const std::vector<float> q = numbers(heads * tokens * features, 0.7),
                           k = numbers(key_heads * tokens * features, 0.3),
                           v = numbers(key_heads * tokens * features, 0.11);
  std::vector<float> out(q.size()), weights(heads * tokens * tokens);
  attention(view(out.data(), {heads, tokens, features}), view(q.data(), {heads, tokens, features}),
            view(k.data(), {key_heads, tokens, features}), view(v.data(), {key_heads, tokens, features}),
            {.position = prepare(Rope{.dims = features}),
             .causal = true,
             .window = 4,
             .weights = view(weights.data(), {heads, tokens, tokens})});
  std::printf("weights of the last token:");
  double sum = 0;
  for (std::int64_t j = 0; j < tokens; ++j) {
    const auto weight = static_cast<double>(weights[static_cast<std::size_t>((tokens - 1) * tokens + j)]);
    std::printf(" %.3f", weight);
    sum += weight;
  }
  std::printf("\nsum %.6f\n", sum);
}
