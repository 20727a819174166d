// Ports of nine schemes, right and with one mistake each, in f32, f16 and bf16, 4, 16, 64 and 256 tokens, 1 and 8 heads (of 256 tokens 2).
// No wrong port agrees, no right one differs, no diagnosis that is sure is wrong, and every verdict that is inconclusive
// names tokens that decide. A run of the tests takes a sample; all of them, with the label `rest`:
//   POSENC_DIAGNOSIS_MATRIX=all diagnosis_tests --gtest_filter='CheckMatrix.*'
// or =31 for every 31st of them, or =2/24 for the second of 24 parts: each has one type, number of tokens and of heads.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "ports.h"
#include "sanitized.h"

namespace posenc::check_matrix_test {
namespace {

using namespace tests;

constexpr std::int64_t kFeatures = 64;

struct Meant {
  const char* name;
  Rope rope;
};

std::vector<Meant> schemes() {
  LongropeScaling lists{.factor = 4, .original_length = 1024};
  for (int i = 0; i < 32; ++i) {
    lists.short_factors.push_back(1 + 0.02 * i);
    lists.long_factors.push_back(1.1 + 0.5 * i);
  }
  return {{"plain", {.dims = 64}},
          {"partial", {.dims = 32}},
          {"interleaved", {.dims = 64, .layout = PairLayout::kInterleaved}},
          {"llama3", {.dims = 64, .base = 500000, .scaling = Llama3Scaling{.factor = 8}}},
          {"yarn", {.dims = 64, .base = 1e6, .scaling = YarnScaling{.factor = 4, .original_length = 32768}}},
          {"deepseek",
           {.dims = 32,
            .layout = PairLayout::kInterleavedToHalves,
            .first_dim = -32,
            .scaling = YarnScaling{.factor = 40, .mscale = 1.0, .mscale_all_dim = 1.0}}},
          {"linear", {.dims = 64, .scaling = LinearScaling{.factor = 4}}},
          {"dynamic", {.dims = 64, .scaling = DynamicScaling{.factor = 2, .original_length = 32}}},
          {"longrope", {.dims = 64, .scaling = lists}}};
}

struct Wrong {
  std::string name;
  Port port;
  std::string words;  // of the advice
  std::int64_t first = 0;
};

Port port_of(const Rope& rope) { return {.rope = rope}; }

// Mistakes in how positions are used and pairs are turned.
std::vector<Wrong> mistakes(const Rope& rope) {
  std::vector<Wrong> list;
  const auto add = [&](const char* name, const char* words, const auto& change, std::int64_t first = 0) {
    Port port = port_of(rope);
    change(port);
    list.push_back({name, port, words, first});
  };
  // features that are moved or magnified are so at position 0 as well
  const bool is_still =
      rope.layout != PairLayout::kInterleavedToHalves && prepare(rope, {.length = 1}).magnitude == 1;
  add("not rotated", is_still ? "Nothing was applied" : "Every token has the position of the first",
      [](Port& port) { port.position = [](auto, double) { return 0.0; }; });
  add("off by one", "Positions are off by 1",
      [](Port& port) { port.position = [](auto, double p) { return p + 1; }; });
  add("twice", "applied twice", [](Port& port) { port.times = 2; });
  add(
      "constant", "Every token has the position of the first",
      [](Port& port) { port.position = [](auto, double) { return 5.0; }; }, 5);
  add("swapped", "Sine and cosine are swapped", [](Port& port) { port.is_swapped = true; });
  add("no minus", "lacks its minus", [](Port& port) { port.lacks_minus = true; });
  add("other cosines", "in the order of other pairs", [](Port& port) { port.has_other_cosines = true; });
  add("clockwise", "direction: expected counter-clockwise", [](Port& port) { port.rope.sign = -1; });
  add(
      "bf16 positions", "Positions are in bf16",
      [](Port& port) { port.position = [](auto, double p) { return rounded_to(p, DataType::kBF16); }; }, 301);
  for (const DataType type : {DataType::kBF16, DataType::kF16}) {
    const bool is_half = type == DataType::kF16;
    add(is_half ? "f16 frequencies" : "bf16 frequencies",
        is_half ? "Frequencies are in f16" : "Frequencies are in bf16",
        [=](Port& port) { port.frequency = [=](double omega) { return rounded_to(omega, type); }; });
    add(is_half ? "f16 angles" : "bf16 angles", is_half ? "are in f16. Compute" : "are in bf16. Compute",
        [=](Port& port) {
          port.frequency = [=](double omega) { return rounded_to(omega, type); };
          port.position = [=](auto, double p) { return rounded_to(p, type); };
          port.angle = [=](double phi) { return rounded_to(phi, type); };
        });
  }
  return list;
}

template <class Scaling> void wrong_factor(const Rope& rope, std::vector<Wrong>& list) {
  if (const auto* const scaling = std::get_if<Scaling>(&*rope.scaling)) {
    Rope port = rope;
    Scaling other = *scaling;
    other.factor *= 2;
    port.scaling = other;
    list.push_back({"factor", port_of(port), "factor: expected"});
  }
}
template <class Scaling> void wrong_length(const Rope& rope, std::vector<Wrong>& list) {
  if (const auto* const scaling = std::get_if<Scaling>(&*rope.scaling)) {
    Rope port = rope;
    Scaling other = *scaling;
    other.original_length *= 2;
    port.scaling = other;
    list.push_back({"original length", port_of(port), "original_length: expected"});
  }
}

std::vector<Wrong> wrong_ports(const Rope& rope) {
  std::vector<Wrong> list = mistakes(rope);
  Rope port = rope;
  port.layout = placement_of(rope.layout, 4).read.step == 1 ? PairLayout::kInterleaved : PairLayout::kHalves;
  list.push_back({"layout", port_of(port), "pairs: expected"});
  port = rope;
  port.base = rope.base == 10000 ? 500000 : 10000;
  list.push_back({"base", port_of(port), "base: expected"});
  if (rope.dims < kFeatures) {
    port = rope;
    port.first_dim = rope.first_dim == 0 ? kFeatures - rope.dims : 0;
    list.push_back({"first dimension", port_of(port), "first rotary dimension: expected"});
    port = rope;
    port.dims = kFeatures;
    port.first_dim = 0;
    if (rope.first_dim == 0) list.push_back({"whole head", port_of(port), "rotary dimensions: expected"});
  }
  if (!std::holds_alternative<NoScaling>(*rope.scaling)) {
    port = rope;
    port.scaling = NoScaling{};
    list.push_back({"no scaling", port_of(port), "scaling: expected"});
  }
  wrong_factor<Llama3Scaling>(rope, list);
  wrong_factor<YarnScaling>(rope, list);
  wrong_factor<LinearScaling>(rope, list);
  wrong_factor<DynamicScaling>(rope, list);
  wrong_length<Llama3Scaling>(rope, list);
  wrong_length<YarnScaling>(rope, list);
  wrong_length<DynamicScaling>(rope, list);
  return list;
}

struct Case {
  Meant meant;
  Wrong wrong;
  DataType type = DataType::kF32;
  std::int64_t tokens = 4, heads = 1;
};

CheckResult checked(const Case& one, const Port& port, std::int64_t tokens, std::int64_t first, unsigned seed = 3) {
  const Typed before = queries({one.heads, tokens, kFeatures}, one.type, seed);
  const std::vector<std::int64_t> ids = counted_from(first, tokens);
  const Typed after = ported(port, before, ids, first + tokens);
  return check(one.meant.rope, before.view(), after.view(), {.positions = ids});
}

// The port that is right: every mistake of a scheme is compared with it.
const CheckResult& checked_right(const Case& one) {
  static std::map<std::string, CheckResult> known;
  const std::string key =
      fmt::format("{} {} {} {} {}", one.meant.name, name_of(one.type), one.tokens, one.heads, one.wrong.first);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known[key] = checked(one, port_of(one.meant.rope), one.tokens, one.wrong.first);
}

bool has_passed(const CheckResult& result) {
  return result.agreement != Agreement::kDiffers && result.agreement != Agreement::kInconclusive;
}

struct Tally {
  int cases = 0, differs = 0, inconclusive = 0, named = 0, sure = 0, right = 0;
};

void run_case(const Case& one, Tally& tally) {
  const std::string what = fmt::format("{}, {}, {}, {} tokens from {}, {} heads", one.meant.name, one.wrong.name,
                                       name_of(one.type), one.tokens, one.wrong.first, one.heads);
  const Port right = port_of(one.meant.rope);
  const CheckResult& good = checked_right(one);
  EXPECT_NE(good.agreement, Agreement::kDiffers) << what << ": " << joined(good.advice);
  tally.right += good.agreement == Agreement::kAgrees ? 1 : 0;
  const CheckResult bad = checked(one, one.wrong.port, one.tokens, one.wrong.first);
  EXPECT_FALSE(has_passed(bad)) << what;
  ++tally.cases;
  if (bad.agreement == Agreement::kDiffers) {
    ++tally.differs;
    const bool is_named = joined(bad.advice).find(one.wrong.words) != std::string::npos;
    const bool is_sure = bad.diagnosis.verdict == Verdict::kSure;
    tally.named += is_named ? 1 : 0;
    tally.sure += is_sure ? 1 : 0;
    EXPECT_TRUE(is_named || !is_sure) << what << ": sure of " << joined(bad.advice) << joined(bad.diagnosis.remarks);
    EXPECT_FALSE(is_sure && bad.advice.empty()) << what;
  }
  if (bad.agreement != Agreement::kInconclusive) return;
  ++tally.inconclusive;
  EXPECT_FALSE(bad.deciding.empty() && !bad.is_float32_enough) << what << ": " << bad.reason;
  if (bad.deciding.empty()) return;
  const DecidingTokens& enough = bad.deciding.front();
  const CheckResult decided = checked(one, right, enough.tokens, enough.first_positions.front(), 4);
  EXPECT_EQ(decided.agreement, Agreement::kAgrees) << what << ": " << bad.reason << "; then " << decided.reason;
  // a port that turns by a constant is no fault of one token
  if (one.wrong.name == "constant") return;
  EXPECT_EQ(checked(one, one.wrong.port, enough.tokens, enough.first_positions.front(), 4).agreement,
            Agreement::kDiffers)
      << what << ": " << bad.reason;
}

TEST(CheckMatrix, NoWrongPortPasses) {
  std::vector<Case> cases;
  for (const Meant& meant : schemes()) {
    for (const Wrong& wrong : wrong_ports(meant.rope)) {
      for (const DataType type : {DataType::kF32, DataType::kF16, DataType::kBF16}) {
        for (const std::int64_t tokens : {4, 16, 64, 256}) {
          for (const std::int64_t heads : {1, tokens < 256 ? 8 : 2}) {
            cases.push_back({meant, wrong, type, tokens, heads});
          }
        }
      }
    }
  }
  // prime to the number of values of everything
  const char* const wanted = std::getenv("POSENC_DIAGNOSIS_MATRIX");
  const bool is_all = wanted != nullptr;
  const auto every = static_cast<std::size_t>(is_all ? std::max(1, std::atoi(wanted)) : 1);  // =7: every seventh
  std::size_t step = is_all ? every : kSanitized ? 4 * 307 : 307, first = 0;
  unsigned part = 1, parts = 1;
  if (is_all && std::sscanf(wanted, "%u/%u", &part, &parts) == 2 && part >= 1 && part <= parts) {
    first = part - 1;
    step = parts;
  }
  std::map<std::string, Tally> tallies;
  for (std::size_t at = first; at < cases.size(); at += step) run_case(cases[at], tallies[cases[at].meant.name]);
  fmt::print("{:12} {:>6} {:>8} {:>13} {:>6} {:>6} {:>13}\n", "", "cases", "differs", "inconclusive", "named", "sure",
             "right agrees");
  for (const auto& [name, one] : tallies) {
    fmt::print("{:12} {:6} {:8} {:13} {:6} {:6} {:13}\n", name, one.cases, one.differs, one.inconclusive, one.named,
               one.sure, one.right);
  }
}

}  // namespace
}  // namespace posenc::check_matrix_test
