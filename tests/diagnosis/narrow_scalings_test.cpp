// Frequencies, or angles, in 16 bits beneath a scaling: a file or a port that keeps inv_freq in bf16 or f16. diagnose names
// the scaling and the type, from tensors of float32 whose result shows it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ports.h"
#include "sanitized.h"

namespace posenc::narrow_scalings_test {
namespace {

using namespace tests;

struct Meant {
  const char* name;
  Rope rope;
};
std::vector<Meant> scaled() {
  return {{"llama3", {.dims = 128, .base = 500000, .scaling = Llama3Scaling{.factor = 8}}},
          {"llama3 of 32", {.dims = 64, .base = 500000, .scaling = Llama3Scaling{.factor = 32}}},
          {"yarn", {.dims = 128, .base = 1e6, .scaling = YarnScaling{.factor = 4, .original_length = 32768}}},
          {"deepseek", {.dims = 64, .layout = PairLayout::kInterleaved, .scaling = YarnScaling{.factor = 40}}}};
}

std::string shown(const Diagnosis& found) {
  std::string text(name_of(found.verdict));
  if (found.best) {
    text += fmt::format(" {} {} residual {:.3g}", to_json(found.best->scheme), name_of(found.best->numerics),
                        found.best->residual);
  }
  return text + "\n" + joined(found.remarks);
}

TEST(DiagnoseNarrowScalings, FrequenciesIn16BitsAreNamed) {
  for (const Meant& meant : scaled()) {
    for (const DataType type : {DataType::kBF16, DataType::kF16}) {
      for (const std::int64_t first : {0, 4096}) {
        if (is_sample() && first > 0) continue;
        const std::string what = fmt::format("{}, {}, from {}", meant.name, name_of(type), first);
        const Typed before = queries({2, 64, meant.rope.dims}, DataType::kF32);
        const std::vector<std::int64_t> ids = counted_from(first, 64);
        const Port port{.rope = meant.rope, .frequency = [=](double omega) { return rounded_to(omega, type); }};
        const Typed after = ported(port, before, ids, first + 64);
        const Diagnosis found = diagnose(before.view(), after.view(), {.positions = ids});
        EXPECT_TRUE(found.verdict == Verdict::kSure || found.verdict == Verdict::kLikely)
            << what << ": " << shown(found);
        ASSERT_TRUE(found.best) << what;
        const auto* const rope = std::get_if<Rope>(&found.best->scheme);
        ASSERT_NE(rope, nullptr) << what;
        EXPECT_EQ(rope->base, meant.rope.base) << what << ": " << shown(found);
        EXPECT_EQ(rope->scaling->index(), meant.rope.scaling->index()) << what << ": " << shown(found);
        EXPECT_EQ(found.best->numerics,
                  type == DataType::kBF16 ? AngleKind::kBf16Frequencies : AngleKind::kF16Frequencies)
            << what << ": " << shown(found);
        // and a check names both, whatever the scaling
        const CheckResult checked = check(meant.rope, before.view(), after.view(), {.positions = ids});
        EXPECT_EQ(checked.agreement, Agreement::kDiffers) << what;
        EXPECT_NE(joined(checked.advice).find(fmt::format("Frequencies are in {}", name_of(type))), std::string::npos)
            << what << ": " << joined(checked.advice);
      }
    }
  }
}

// Exact frequencies are not taken for rounded ones.
TEST(DiagnoseNarrowScalings, ExactFrequenciesAreExact) {
  for (const Meant& meant : scaled()) {
    const Typed before = queries({2, 64, meant.rope.dims}, DataType::kF32);
    const std::vector<std::int64_t> ids = counted_from(4096, 64);
    const Typed after = ported({.rope = meant.rope}, before, ids, 4160);
    const Diagnosis found = diagnose(before.view(), after.view(), {.positions = ids});
    ASSERT_TRUE(found.best) << meant.name;
    EXPECT_LE(found.best->numerics, AngleKind::kGgmlF32) << meant.name << ": " << shown(found);
  }
}

}  // namespace
}  // namespace posenc::narrow_scalings_test
