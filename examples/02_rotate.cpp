// 02: rotary position (RoPE): after rotating queries and keys, their dot product depends only on the distance.
#include <posenc/posenc.h>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

int main() {
  using namespace posenc;
  const std::int64_t heads = 2, tokens = 6, features = 8;
  const Rotation rope = prepare(Rope{.dims = features, .base = 500'000.0});  // once per model

  // The tensors are [tokens, heads, features] in memory, so rotate is called with Axes::kThd. Every position has the same
  // query and key.
  std::vector<float> q(tokens * heads * features), k(q.size());
  for (std::size_t i = 0; i < q.size(); ++i) {
    q[i] = std::sin(static_cast<float>(i % (heads * features)));
    k[i] = std::cos(static_cast<float>(i % (heads * features)));
  }
  rotate({view(q.data(), {tokens, heads, features}), view(k.data(), {tokens, heads, features})}, Axes::kThd,
         {.first = 1000}, rope);

  const auto score = [&](std::int64_t m, std::int64_t n) {  // of head 0
    const auto q_row = q.begin() + m * heads * features, k_row = k.begin() + n * heads * features;
    return std::inner_product(q_row, q_row + features, k_row, 0.0f);
  };
  std::printf("distance 2: %.5f %.5f %.5f\n", static_cast<double>(score(2, 0)), static_cast<double>(score(3, 1)),
              static_cast<double>(score(5, 3)));
  std::printf("distance 3: %.5f %.5f\n", static_cast<double>(score(3, 0)), static_cast<double>(score(5, 2)));
  return std::fabs(score(2, 0) - score(5, 3)) < 1e-5f ? 0 : 1;
}
