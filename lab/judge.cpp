#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "lab/claims.h"
#include "lab/philox.h"

namespace posenc::lab {
namespace {

bool holds(const Claim& claim, double value) {
  if (claim.side == Side::kAtLeast) return value >= claim.threshold;
  return (claim.side == Side::kWithin ? std::abs(value) : value) <= claim.threshold;
}

}  // namespace

Estimate bootstrap(std::span<const double> values) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (values.empty()) return {kNone, kNone, kNone};
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() == 1) return {mean, kNone, kNone};
  constexpr std::int64_t kDraws = 10'000;
  std::vector<double> means;
  for (std::int64_t draw = 0; draw < kDraws; ++draw) {
    Stream random(0, Purpose::kBootstrap, 0, draw);
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum += values[random.below(static_cast<std::int64_t>(values.size()))];
    }
    means.push_back(sum / count);
  }
  std::sort(means.begin(), means.end());
  return {mean, means[kDraws / 40], means[kDraws - 1 - kDraws / 40]};
}

std::string_view name_of(Answer answer) noexcept {
  constexpr std::string_view kNames[] = {"reproduced", "not reproduced", "not testable at this scale"};
  return kNames[static_cast<std::size_t>(answer)];
}

std::string threshold_text(const Claim& claim) {
  const std::string_view sign = claim.side == Side::kAtMost ? "≤ " : claim.side == Side::kAtLeast ? "≥ " : "within ±";
  return fmt::format("{}{}{}", sign, claim.threshold < 0 ? "−" : "", std::fabs(claim.threshold));
}

Verdict judge(const Claim& claim, const std::vector<Outcome>& outcomes) {
  Verdict verdict;
  verdict.claim = &claim;
  if (claim.value == nullptr) verdict.reason = "needs a model or a data set that is thousands of times larger";
  std::set<std::uint64_t> seeds;
  for (const Outcome& outcome : outcomes) seeds.insert(outcome.job.seed);
  for (const std::uint64_t seed : seeds) {
    const std::optional<double> value =
        claim.value != nullptr ? claim.value(outcomes, seed, verdict.reason) : std::nullopt;
    if (value && std::isfinite(*value)) verdict.values.push_back(*value);
  }
  verdict.estimate = bootstrap(verdict.values);
  if (verdict.values.empty() && verdict.reason.empty()) {
    verdict.reason = "this run trained no model that could show it";
  }
  if (verdict.values.size() == 1) {
    verdict.reason = verdict.reason.empty() ? "trained with one seed, which gives no interval"
                                            : "one seed remains, which gives no interval: " + verdict.reason;
  }
  if (verdict.values.size() < 2) return verdict;
  const Estimate& estimate = verdict.estimate;
  const bool low = holds(claim, estimate.low), high = holds(claim, estimate.high);
  verdict.answer = low && high ? Answer::kReproduced : Answer::kNotReproduced;
  if (low != high) verdict.reason = "the interval includes the threshold: more seeds would decide";
  return verdict;
}

std::vector<Verdict> judge(const std::vector<Outcome>& outcomes) {
  std::vector<Verdict> verdicts;
  for (const Claim& claim : claims()) verdicts.push_back(judge(claim, outcomes));
  return verdicts;
}

Json to_json(const Verdict& verdict) {
  const Claim& claim = *verdict.claim;
  Json::Array values(verdict.values.begin(), verdict.values.end());
  Json::Array interval;
  if (verdict.values.size() > 1) interval = {verdict.estimate.low, verdict.estimate.high};
  return Json::Object{{"id", claim.id},
                      {"claim", claim.text},
                      {"source", claim.source},
                      {"published", claim.published},
                      {"verdict", name_of(verdict.answer)},
                      {"measure", claim.measure},
                      {"threshold", threshold_text(claim)},
                      {"mean", verdict.estimate.mean},
                      {"interval_95", interval},
                      {"values", values},
                      {"unit", claim.unit},
                      {"reason", verdict.reason}};
}

}  // namespace posenc::lab
