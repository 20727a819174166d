// Tables computed by transformers (oracle/data/goldens/README.md): the exact tables must be within the float32 error
// of the recipe that produced them, and if that recipe is the float32 one, hf-f32 must reproduce it.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <iterator>

#include "backends.h"
#include "posenc/files.h"
#include "posenc/posenc.h"

namespace posenc::goldens_test {
namespace {

NpyArray golden(const std::string& name) {
  std::ifstream file(std::string(POSENC_TEST_DATA) + "/goldens/" + name + ".npy", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  return read_npy(std::as_bytes(std::span(bytes)));
}

struct Difference {
  double largest = 0;
  std::int64_t differing = 0;      // values whose bytes differ
  std::int64_t largest_steps = 0;  // floats apart
};

Difference compare(const NpyArray& golden, const Addition& form, const Positions& positions) {
  std::vector<float> table(static_cast<std::size_t>(count_of(golden.shape)));
  tabulate(view(table.data(), golden.shape), positions, form);
  const auto* want = reinterpret_cast<const float*>(golden.bytes.data());
  Difference difference;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i] == want[i]) continue;
    ++difference.differing;
    difference.largest =
        std::max(difference.largest, std::fabs(static_cast<double>(table[i]) - static_cast<double>(want[i])));
    const std::int64_t steps = std::abs(static_cast<std::int64_t>(std::bit_cast<std::int32_t>(table[i])) -
                                        static_cast<std::int64_t>(std::bit_cast<std::int32_t>(want[i])));
    difference.largest_steps = std::max(difference.largest_steps, steps);
  }
  return difference;
}

// Made in float64 and cast: the exact table is the same but for a handful of double roundings.
TEST(Goldens, MarianPegasusAndRoformerEqualTheExactTable) {
  const Sinusoidal scheme{.width = 64, .layout = WaveLayout::kSinCos};
  tests::for_each_engine([&] {
    for (const char* name : {"sinusoid-marian-table", "sinusoid-pegasus-table", "sinusoid-roformer-table"}) {
      SCOPED_TRACE(name);
      const Difference difference = compare(golden(name), prepare(scheme), {});
      EXPECT_LE(difference.largest_steps, 1);
      EXPECT_LE(difference.differing, 1);
    }
  });
}

TEST(Goldens, VitMaeEqualsTheExactTableOfAGrid) {
  const Sinusoidal scheme{.width = 256, .layout = WaveLayout::kSinCos, .axes = 2};
  const std::vector<std::int64_t> extents = {128, 14};
  const auto ids = grid_positions(extents);
  tests::for_each_engine([&] {
    const Difference difference =
        compare(golden("sincos2d-vitmae-14-table"), prepare(scheme), {.ids = ids, .axes = 2});
    EXPECT_LE(difference.largest_steps, 1);
    EXPECT_LE(difference.differing, 1);
  });
}

// Made in float32 throughout. The angle at 1500 is off by half an ulp of 1500 (6.1e-5) and by 1500 times half an ulp
// of the frequency (4.5e-5 at most); exact must stay within that.
TEST(Goldens, WhisperIsExactWithinItsFloat32Angles) {
  const Sinusoidal scheme{.width = 384, .spacing = Spacing::kInclusive, .layout = WaveLayout::kSinCos};
  const NpyArray whisper = golden("sinusoid-whisper-table");
  tests::for_each_engine([&] {
    const Difference exact = compare(whisper, prepare(scheme), {});
    EXPECT_LE(exact.largest, 1.1e-4);
    EXPECT_GT(exact.differing, 100'000) << "the recipe's error should be visible";
  });
}

// hf-f32 repeats those angles. What remains is torch's own rounding: its float32 exp is 1 ulp off at two of the 192
// frequencies, and its sine and cosine are off by 1 ulp here and there.
TEST(Goldens, WhisperIsItsFloat32RecipeWithinOneUlp) {
  const Sinusoidal scheme{.width = 384, .spacing = Spacing::kInclusive, .layout = WaveLayout::kSinCos};
  const NpyArray whisper = golden("sinusoid-whisper-table");
  Addition form = prepare(scheme, {.numerics = Numerics::kHfF32});
  for (const std::size_t torch_is_one_ulp_high : {45, 59}) {
    float& factor = std::get<Waves>(form.source).float32_angles.factors[torch_is_one_ulp_high];
    factor = std::nextafter(factor, 1.0f);
  }
  tests::for_each_engine([&] {
    const Difference repeated = compare(whisper, form, {});
    EXPECT_LE(repeated.largest_steps, 1);
    EXPECT_LE(repeated.differing, count_of(whisper.shape) / 20) << repeated.differing;
  });
}

TEST(Goldens, RobertaPositions) {
  const NpyArray ids = golden("roberta-positions-input_ids"), want = golden("roberta-positions-position_ids");
  const auto* tokens = reinterpret_cast<const std::int64_t*>(ids.bytes.data());
  const auto* positions = reinterpret_cast<const std::int64_t*>(want.bytes.data());
  std::vector<std::int64_t> mask;
  for (std::int64_t i = 0; i < count_of(ids.shape); ++i) mask.push_back(tokens[i] != 1);
  const auto got = positions_from_mask(mask, {.batch = ids.shape[0], .rule = MaskRule::kRoberta, .padding = 1});
  EXPECT_EQ(got, std::vector<std::int64_t>(positions, positions + count_of(want.shape)));
}

}  // namespace
}  // namespace posenc::goldens_test
