// The position vectors of "The cat sat": sines and cosines of the position, four features each.
#include <posenc/posenc.h>

#include <array>
#include <cstdio>

int main() {
  const posenc::Addition form = posenc::prepare(posenc::Sinusoidal{.width = 4});
  std::array<std::array<float, 4>, 3> table{};
  posenc::tabulate(posenc::view(table[0].data(), {3, 4}), {.first = 0}, form);

  const std::array<const char*, 3> words = {"The", "cat", "sat"};
  for (std::size_t p = 0; p < words.size(); ++p) {
    std::printf("%zu %s", p, words[p]);
    for (const float value : table[p]) std::printf(" %6.3f", static_cast<double>(value));
    std::printf("\n");
  }
}
