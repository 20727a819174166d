// Writes the bytes of the published tables, so that their SHA-256 can be compared on any machine:
//   table_bytes                          lists the tables
//   table_bytes NAME [BACKEND [TARGET]]  writes one to standard output
//   table_bytes --targets                lists the SIMD targets that this machine can run

#include <cstdio>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/backend.h"
#include "posenc/error.h"
#include "posenc/scheme.h"

namespace {

using namespace posenc;

struct Table {
  const char* name;
  DataType type;
  Sinusoidal scheme;
  std::int64_t first, rows;
  Numerics numerics = Numerics::kExact;
};

const std::int64_t kFar = kPositionLimit;
const Table kTables[] = {
    {"paper-512", DataType::kF32, {.width = 512}, 0, 2048},
    {"paper-1024-far", DataType::kF32, {.width = 1024}, 1'000'000, 1024},
    {"paper-512-2^31", DataType::kF32, {.width = 512}, (1ll << 31) - 512, 1024},
    {"paper-256-2^53", DataType::kF32, {.width = 256}, kFar - 1024, 1024},
    {"paper-64-odd-rows", DataType::kF32, {.width = 64}, 12'345, 777},
    {"base-500000", DataType::kF32, {.width = 256, .base = 5e5}, 131'000, 1024},
    {"base-1e6-halves", DataType::kF32, {.width = 256, .base = 1e6, .layout = WaveLayout::kSinCos}, 0, 1024},
    {"cos-sin", DataType::kF32, {.width = 130, .layout = WaveLayout::kCosSin}, 77, 900},
    {"whisper",
     DataType::kF32,
     {.width = 384, .spacing = Spacing::kInclusive, .layout = WaveLayout::kSinCos},
     0,
     1500},
    {"odd-trim", DataType::kF32, {.width = 77, .odd = OddWidth::kTrim}, 0, 600},
    {"odd-zero", DataType::kF32, {.width = 77, .odd = OddWidth::kZero}, 0, 600},
    {"scaled", DataType::kF32, {.width = 128, .scale = 0.125}, 4096, 1024},
    {"scaled-by-a-third", DataType::kF32, {.width = 128, .scale = 1.0 / 3}, 4096, 1024},
    {"bf16", DataType::kBF16, {.width = 512}, 0, 2048},
    {"bf16-far", DataType::kBF16, {.width = 256, .base = 5e5}, 10'000'000, 1024},
    {"f16", DataType::kF16, {.width = 512}, 0, 2048},
    {"f64", DataType::kF64, {.width = 128}, 0, 256},
    {"f64-far", DataType::kF64, {.width = 128}, kFar - 128, 128},
    {"hf-f32", DataType::kF32, {.width = 128}, 100'000, 256, Numerics::kHfF32},
    {"ggml-f32", DataType::kF32, {.width = 128}, 100'000, 256, Numerics::kGgmlF32},
};

int write_table(const Table& table) {
  const std::int64_t width = table.scheme.width;
  std::vector<std::byte> bytes(static_cast<std::size_t>(table.rows * width * size_of(table.type)));
  tabulate(TensorView(bytes.data(), table.type, {table.rows, width}), {.first = table.first},
           prepare(table.scheme, {.numerics = table.numerics}));
  return std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0 ? 0 : 3;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 1) {
    for (const Table& table : kTables) std::puts(table.name);
    return 0;
  }
  const std::string name = arguments[1];
  if (name == "--targets") {
    for (const std::string& target : simd_targets()) std::puts(target.c_str());
    return 0;
  }
  if (count > 2) force_backend(arguments[2]);
  if (count > 3) force_simd_target(arguments[3]);
  for (const Table& table : kTables) {
    if (name == table.name) return write_table(table);
  }
  std::fprintf(stderr, "table_bytes: no table '%s'\n", name.c_str());
  return 2;
}
