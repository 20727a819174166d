#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ports.h"
#include "sanitized.h"

// One wrong port of a matrix, and what is demanded of the verdicts on it and on the right one: no wrong port agrees, no
// right one differs, no diagnosis that is sure is wrong, and every verdict that is inconclusive names tokens that decide.
namespace posenc::tests {

struct PortCase {
  std::string meant, wrong, where;  // "t5", "max_distance 64", "bf16, 16 tokens"
  std::string words;                // of the advice
  /// The verdict on the right port (or the wrong one) in this case's tensors, or in those that would decide.
  std::function<CheckResult(bool is_right, const DecidingTokens* enough)> check;
};

struct PortTally {
  int cases = 0, differs = 0, inconclusive = 0, named = 0, sure = 0, right = 0;
};

inline bool has_passed(const CheckResult& result) {
  return result.agreement != Agreement::kDiffers && result.agreement != Agreement::kInconclusive;
}

inline void run_port_case(const PortCase& one, PortTally& tally) {
  const std::string what = fmt::format("{}, {}, {}", one.meant, one.wrong, one.where);
  const CheckResult good = one.check(true, nullptr);
  EXPECT_NE(good.agreement, Agreement::kDiffers) << what << ": " << joined(good.advice);
  tally.right += good.agreement == Agreement::kAgrees ? 1 : 0;
  const CheckResult bad = one.check(false, nullptr);
  EXPECT_FALSE(has_passed(bad)) << what;
  ++tally.cases;
  if (bad.agreement == Agreement::kDiffers) {
    ++tally.differs;
    const bool is_named = joined(bad.advice).find(one.words) != std::string::npos;
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
  const CheckResult decided = one.check(true, &bad.deciding.front());
  EXPECT_TRUE(has_passed(decided)) << what << ": " << bad.reason << "; then " << decided.reason
                                   << joined(decided.advice);
  EXPECT_EQ(one.check(false, &bad.deciding.front()).agreement, Agreement::kDiffers) << what << ": " << bad.reason;
}

/// A sample of the cases, or as many as POSENC_DIAGNOSIS_MATRIX says: "all", "31" for every 31st, "2/24" for the second
/// of 24 parts.
inline void run_port_cases(const std::vector<PortCase>& cases, std::size_t usual_step) {
  const char* const wanted = std::getenv("POSENC_DIAGNOSIS_MATRIX");
  std::size_t step = kSanitized ? 4 * usual_step : usual_step, first = 0;
  unsigned part = 1, parts = 1;
  if (wanted != nullptr) step = static_cast<std::size_t>(std::max(1, std::atoi(wanted)));
  if (wanted != nullptr && std::sscanf(wanted, "%u/%u", &part, &parts) == 2 && part >= 1 && part <= parts) {
    first = part - 1;
    step = parts;
  }
  std::map<std::string, PortTally> tallies;
  for (std::size_t at = first; at < cases.size(); at += step) run_port_case(cases[at], tallies[cases[at].meant]);
  fmt::print("{:12} {:>6} {:>8} {:>13} {:>6} {:>6} {:>13}\n", "", "cases", "differs", "inconclusive", "named", "sure",
             "right agrees");
  for (const auto& [name, one] : tallies) {
    fmt::print("{:12} {:6} {:8} {:13} {:6} {:6} {:13}\n", name, one.cases, one.differs, one.inconclusive, one.named,
               one.sure, one.right);
  }
}

}  // namespace posenc::tests
