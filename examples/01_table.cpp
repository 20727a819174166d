// 01: the sinusoidal position vectors of "Attention Is All You Need", as a table and added to embeddings.
#include <posenc/posenc.h>

#include <cstdio>
#include <vector>

int main() {
  using namespace posenc;
  const std::int64_t tokens = 3, width = 4;
  const Addition form = prepare(Sinusoidal{.width = width});
  std::vector<float> table(tokens * width);
  tabulate(view(table.data(), {tokens, width}), {.first = 0}, form);

  // Usually no table is needed: add() computes the vectors and adds them to the embeddings.
  std::vector<float> embeddings(tokens * width, 1.0f);
  add(view(embeddings.data(), {tokens, width}), {.first = 0}, form);

  for (std::size_t i = 0; i < table.size(); ++i) {
    std::printf("%7.4f %7.4f%s", static_cast<double>(table[i]), static_cast<double>(embeddings[i]),
                i % width == width - 1 ? "\n" : "   ");
  }
}
