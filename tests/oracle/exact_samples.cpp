// Writes 1,000 samples of what must have the same bytes on every machine, one in a line: rows of cosines and sines at
// random positions below 2^53, of every type and kind of numerics, by the reference and by every SIMD target.
//   exact_samples         the samples; fails where two backends of this machine differ
// tests/oracle/same_samples.sh compares the lines of two architectures.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/backend.h"
#include "posenc/scheme.h"

namespace {

using namespace posenc;

constexpr int kSamples = 1000, kPairs = 8, kRows = 3;

// splitmix64: the same numbers everywhere.
std::uint64_t next(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct Sample {
  Rotation form;
  DataType type;
  std::int64_t first;
};

Sample sample(std::uint64_t& state) {
  const DataType types[] = {DataType::kF32, DataType::kBF16, DataType::kF16, DataType::kF64};
  const Numerics numerics[] = {Numerics::kExact, Numerics::kExact, Numerics::kHfF32, Numerics::kGgmlF32};
  const RopeScaling scalings[] = {NoScaling{}, LinearScaling{.factor = 3}, Llama3Scaling{.factor = 8},
                                  YarnScaling{.factor = 4, .original_length = 4096}};
  const double bases[] = {10'000, 500'000, 1e6, 12'345.678};
  const Numerics chosen = numerics[next(state) % 4];
  // Engines' float32 angles have one type, and mean nothing far out.
  const DataType type = chosen == Numerics::kExact ? types[next(state) % 4] : DataType::kF32;
  const int bits = static_cast<int>(next(state) % (chosen == Numerics::kExact ? 53 : 20)) + 1;
  const auto first = static_cast<std::int64_t>(next(state) >> (64 - bits));
  const Rope rope{.dims = 2 * kPairs, .base = bases[next(state) % 4], .scaling = scalings[next(state) % 4]};
  return {prepare(rope, {.numerics = chosen}), type, first < kPositionLimit - kRows ? first : kPositionLimit - kRows};
}

std::string bytes_of(const Sample& sample) {
  std::string both;
  std::vector<std::uint64_t> cosines(kRows * kPairs), sines(kRows * kPairs);
  tabulate(TensorView(cosines.data(), sample.type, {kRows, kPairs}),
           TensorView(sines.data(), sample.type, {kRows, kPairs}), {.first = sample.first}, sample.form);
  for (const std::vector<std::uint64_t>& table : {cosines, sines}) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(table.data());
    for (std::int64_t i = 0; i < kRows * kPairs * size_of(sample.type); ++i) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
      both += digits;
    }
  }
  return both;
}

}  // namespace

int main() {
  std::uint64_t state = 20'261'118;
  for (int i = 0; i < kSamples; ++i) {
    const Sample one = sample(state);
    force_backend("reference");
    const std::string expected = bytes_of(one);
    force_backend("cpu");
    for (const std::string& target : simd_targets()) {
      force_simd_target(target);
      if (const std::string got = bytes_of(one); got != expected) {
        std::fprintf(stderr, "sample %d on %s: expected %s, got %s\n", i, target.c_str(), expected.c_str(),
                     got.c_str());
        return 1;
      }
    }
    std::printf("%lld %s\n", static_cast<long long>(one.first), expected.c_str());
  }
  return 0;
}
