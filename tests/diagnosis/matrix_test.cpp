// Every combination of conventions: 3 layouts × 2 directions × 4 bases × the whole head or half of it × 4 first
// positions × float32 and bfloat16 × 7 scalings. One or two heads and few tokens each; every answer must be right,
// sure or not, and one that is called sure must name the scaling. All 2688 take minutes; a run tests every 53rd,
// which covers every value of everything. For all:
//   POSENC_DIAGNOSIS_MATRIX=all diagnosis_tests --gtest_filter='DiagnosisMatrix.*'
// or =2/8 for the second eighth of them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "sanitized.h"
#include "tensors.h"

namespace posenc::matrix_test {
namespace {

using namespace tests;

std::vector<RopeScaling> scalings_for(std::int64_t pairs) {
  LongropeScaling searched{.factor = 16, .original_length = 4096};
  for (std::int64_t i = 0; i < pairs; ++i) {
    searched.short_factors.push_back(1.05 + 0.15 * static_cast<double>(i + i % 3));
  }
  searched.long_factors = searched.short_factors;
  return {NoScaling{},
          LinearScaling{.factor = 4},
          NtkScaling{.factor = 4},
          DynamicScaling{.factor = 2, .original_length = 8},
          YarnScaling{.factor = 4, .original_length = 4096},
          Llama3Scaling{.factor = 8, .original_length = 8192},
          searched};
}

struct Tally {
  int cases = 0, sure = 0, right = 0, wrong_but_sure = 0;
};

struct MatrixCase {
  Rope rope;
  How how;
  bool is_narrow = false;
};

std::vector<MatrixCase> matrix() {
  std::vector<MatrixCase> cases;
  constexpr std::int64_t kFeatures = 64;
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved, PairLayout::kInterleavedToHalves}) {
    for (const std::int64_t sign : {1, -1}) {
      for (const double base : {1000.0, 10000.0, 500000.0, 1e6}) {
        for (const std::int64_t dims : {kFeatures, kFeatures / 2}) {
          for (const std::int64_t first : {0, 1, 2, 100}) {
            for (const bool is_narrow : {false, true}) {
              for (const RopeScaling& scaling : scalings_for(dims / 2)) {
                const Rope rope{.dims = dims, .base = base, .layout = layout, .sign = sign, .scaling = scaling};
                // bfloat16 loses what float32 shows in 16 tokens of one head
                const How how{.heads = is_narrow ? 2 : 1,
                              .sequence = is_narrow ? 48 : 16,
                              .features = kFeatures,
                              .first = first,
                              .seed = static_cast<unsigned>(cases.size())};
                cases.push_back({rope, how, is_narrow});
              }
            }
          }
        }
      }
    }
  }
  return cases;
}

// Right: the same pairs, start and magnitude, and frequencies whose angles are the same over the tokens that were
// given, to what the type can show (a tenth of a degree, in bfloat16 two). ntk and a larger base are the same
// numbers.
bool is_right(const MatrixCase& one, const Convention& found) {
  const Rope& best = std::get<Rope>(found.scheme);
  if (best.layout != one.rope.layout || best.sign != one.rope.sign || best.dims != one.rope.dims) return false;
  if (best.first_dim != one.rope.first_dim || found.first_position != one.how.first || found.is_swapped) return false;
  const PrepareOptions options{.length = one.how.first + one.how.sequence};
  const Rotation want = prepare(one.rope, options), got = prepare(best, options);
  if (std::fabs(found.magnitude / want.magnitude - 1) > (one.is_narrow ? 5e-3 : 1e-5)) return false;
  const double room = (one.is_narrow ? 2.0 : 0.1) / 57.3 / static_cast<double>(one.how.sequence);
  for (std::size_t i = 0; i < want.frequencies.size(); ++i) {
    if (std::fabs(radians_of(want.frequencies[i]) - radians_of(got.frequencies[i])) > room) return false;
  }
  return true;
}

// Where it is sure of a scaling, that is the one, to what 16 tokens can show of its parameters.
bool is_same_kind(const MatrixCase& one, const Convention& found) {
  const RopeScaling &want = *one.rope.scaling, &got = *std::get<Rope>(found.scheme).scaling;
  const bool is_base = std::holds_alternative<NtkScaling>(want) || std::holds_alternative<DynamicScaling>(want);
  return want.index() == got.index() || (is_base && std::holds_alternative<NoScaling>(got));
}

// ntk scaling of a usual base is a larger base; that it may be one is said.
bool names_ntk(const MatrixCase& one, const Diagnosis& found) {
  const auto* const ntk = std::get_if<NtkScaling>(&*one.rope.scaling);
  if (ntk == nullptr || one.rope.base < 10000) return true;
  const std::string words = fmt::format("is {} with ntk scaling by {}", one.rope.base, ntk->factor);
  for (const std::string& remark : found.remarks) {
    if (remark.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(DiagnosisMatrix, EveryConvention) {
  const std::vector<MatrixCase> cases = matrix();
  ASSERT_EQ(cases.size(), 2688u);
  std::map<std::string, Tally> tallies;
  // prime to the number of values of everything
  std::size_t step = is_sample() ? 32 * 53 : kSanitized ? 8 * 53 : 53, first = 0;
  if (const char* const wanted = std::getenv("POSENC_DIAGNOSIS_MATRIX")) {
    step = 1;
    unsigned part = 1, parts = 1;
    if (std::sscanf(wanted, "%u/%u", &part, &parts) == 2 && part >= 1 && part <= parts) {
      first = part - 1;
      step = parts;
    }
  }
  for (std::size_t at = first; at < cases.size(); at += step) {
    const MatrixCase& one = cases[at];
    const Made tensors = made(one.rope, one.how);
    const std::vector<BFloat16> before = as_bf16(tensors.before), after = as_bf16(tensors.after);
    const Diagnosis found = one.is_narrow
                                ? diagnose(view(before.data(), tensors.shape), view(after.data(), tensors.shape))
                                : diagnose(tensors.before_view(), tensors.after_view());
    const std::string kind =
        fmt::format("{:8} {}", std::visit([](const auto& s) { return s.name; }, *one.rope.scaling),
                    one.is_narrow ? "bf16" : "f32");
    Tally& tally = tallies[kind];
    const bool has_rope = found.best && std::holds_alternative<Rope>(found.best->scheme);
    const bool right = has_rope && is_right(one, *found.best);
    const bool is_sure = found.verdict == Verdict::kSure;
    const bool is_wrong = is_sure && !(right && is_same_kind(one, *found.best));
    ++tally.cases;
    tally.right += right ? 1 : 0;
    tally.sure += is_sure ? 1 : 0;
    tally.wrong_but_sure += is_wrong ? 1 : 0;
    const bool has_pairs = has_rope && std::get<Rope>(found.best->scheme).layout == one.rope.layout &&
                           std::get<Rope>(found.best->scheme).sign == one.rope.sign;
    const std::string what =
        fmt::format("{} {} from {}: {} {} first {} magnitude {} residual {:.2g}", to_json(one.rope), kind,
                    one.how.first, name_of(found.verdict), found.best ? to_json(found.best->scheme) : "nothing",
                    found.best ? found.best->first_position : 0, found.best ? found.best->magnitude : 0,
                    found.best ? found.best->residual : 0);
    EXPECT_FALSE(is_wrong) << what;
    EXPECT_TRUE(has_pairs) << what;
    EXPECT_TRUE(right) << what;
    EXPECT_TRUE(names_ntk(one, found)) << what;
  }
  Tally all;
  fmt::print("{:14} {:>6} {:>6} {:>6} {:>6}\n", "", "cases", "right", "sure", "wrong");
  for (const auto& [kind, tally] : tallies) {
    fmt::print("{:14} {:6} {:6} {:6} {:6}\n", kind, tally.cases, tally.right, tally.sure, tally.wrong_but_sure);
    all.cases += tally.cases;
    all.right += tally.right;
    all.sure += tally.sure;
    all.wrong_but_sure += tally.wrong_but_sure;
  }
  fmt::print("{:14} {:6} {:6} {:6} {:6}\n", "all", all.cases, all.right, all.sure, all.wrong_but_sure);
  EXPECT_EQ(all.wrong_but_sure, 0);
  EXPECT_EQ(all.right, all.cases);
}

}  // namespace
}  // namespace posenc::matrix_test
