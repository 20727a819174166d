// Runs a fuzz target on files: each unchanged, and small ones truncated after every byte. replay FOLDER…
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "target.h"

namespace {

void try_bytes(const std::vector<char>& file, std::size_t length) {
  // exactly as long as what is left, so that AddressSanitizer sees every byte read past its end
  const std::vector<std::uint8_t> bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int count, char** arguments) {
  constexpr std::size_t kSmall = 4096;
  int files = 0;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
      try_bytes(file, file.size());
      for (std::size_t length = 0; length < std::min(file.size(), kSmall); ++length) try_bytes(file, length);
      ++files;
    }
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}
