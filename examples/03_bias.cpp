// 03: ALiBi subtracts a slope times the distance from every attention score. Attention does this internally (see 04);
// here the biases are written to a matrix and printed.
#include <posenc/posenc.h>

#include <cstdio>
#include <vector>

int main() {
  using namespace posenc;
  const std::int64_t heads = 2, tokens = 4;
  const Bias alibi = prepare(Alibi{.heads = heads});
  std::vector<float> scores(heads * tokens * tokens);
  bias(view(scores.data(), {heads, tokens, tokens}), {.first = 0}, {.first = 0}, alibi);
  for (std::int64_t h = 0; h < heads; ++h) {
    std::printf("head %d\n", static_cast<int>(h));
    for (std::int64_t m = 0; m < tokens; ++m) {
      for (std::int64_t n = 0; n <= m; ++n) {
        std::printf(" %8.5f", static_cast<double>(scores[static_cast<std::size_t>((h * tokens + m) * tokens + n)]));
      }
      std::printf("\n");
    }
  }
}
