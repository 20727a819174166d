#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "lab/claims.h"

namespace posenc::lab {
namespace {

bool holds(const Claim& claim, double value) {
  if (claim.side == Side::kAtLeast) return value >= claim.threshold;
  return (claim.side == Side::kWithin ? std::abs(value) : value) <= claim.threshold;
}

// Whether the whole interval is on the other side.
bool is_off(const Claim& claim, const Estimate& estimate) {
  if (claim.side == Side::kWithin) return estimate.low > claim.threshold || estimate.high < -claim.threshold;
  return !holds(claim, estimate.low) && !holds(claim, estimate.high);
}

// Few seeds decide only what is clear: the nearest value is farther from the threshold than they are from each other.
bool is_far(const Claim& claim, const Estimate& estimate, std::size_t seeds) {
  double nearest = std::min(std::abs(estimate.low - claim.threshold), std::abs(estimate.high - claim.threshold));
  if (claim.side == Side::kWithin) {
    nearest =
        std::min({nearest, std::abs(estimate.low + claim.threshold), std::abs(estimate.high + claim.threshold)});
  }
  return seeds > 1 && nearest > estimate.high - estimate.low;
}

// The quantile 0.975 of Student's t for so many degrees of freedom; beyond the table within 0.002.
double student(std::int64_t freedom) {
  constexpr double kQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                   2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086};
  if (freedom <= std::ssize(kQuantiles)) return kQuantiles[freedom - 1];
  return 1.96 + 2.5 / static_cast<double>(freedom);
}

// Ratios are averaged as logarithms.
Estimate estimate_for(const Claim& claim, std::vector<double> values) {
  if (claim.unit != "ratio") return estimate_of(values);
  for (double& value : values) value = std::log(value);
  const Estimate logs = estimate_of(values);
  return {std::exp(logs.mean), std::exp(logs.low), std::exp(logs.high)};
}

void decide(Verdict& verdict) {
  const Claim& claim = *verdict.claim;
  const Estimate& estimate = verdict.estimate;
  const bool is_few = std::ssize(verdict.values) < kFewestSeeds;
  if (is_few && !is_far(claim, estimate, verdict.values.size())) {
    verdict.answer = Answer::kUndecided;
    const std::string why = fmt::format("{}, too close to the threshold for so few", interval_text(verdict));
    verdict.reason = verdict.reason.empty() ? why : fmt::format("{}; {}", why, verdict.reason);
  } else if (holds(claim, estimate.low) && holds(claim, estimate.high)) {
    verdict.answer = Answer::kReproduced;
  } else if (is_off(claim, estimate)) {
    verdict.answer = Answer::kRefuted;
  } else {
    verdict.answer = Answer::kUndecided;
    verdict.reason = "the interval includes the threshold: more seeds would decide";
  }
}

}  // namespace

Estimate estimate_of(std::span<const double> values) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (values.empty()) return {kNone, kNone, kNone};
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (std::ssize(values) < kFewestSeeds) return {mean, *least, *most};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half = student(std::ssize(values) - 1) * std::sqrt(squares / (count - 1) / count);
  return {mean, mean - half, mean + half};
}

std::string_view name_of(Answer answer) noexcept {
  constexpr std::string_view kNames[] = {"reproduced", "refuted", "undecided", "not testable here"};
  return kNames[static_cast<std::size_t>(answer)];
}

std::string threshold_text(const Claim& claim) {
  const std::string_view sign = claim.side == Side::kAtMost ? "≤ " : claim.side == Side::kAtLeast ? "≥ " : "within ±";
  return fmt::format("{}{}{}", sign, claim.threshold < 0 ? "−" : "", std::fabs(claim.threshold));
}

std::string interval_text(const Verdict& verdict) {
  const std::int64_t seeds = std::ssize(verdict.values);
  if (seeds == 1) return "one seed";
  return fmt::format("{} of {} seeds", seeds < kFewestSeeds ? "range" : "95% interval", seeds);
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
  verdict.estimate = estimate_for(claim, verdict.values);
  if (!verdict.values.empty()) {
    decide(verdict);
  } else if (verdict.reason.empty()) {
    verdict.reason = "this run trained no model that could show it";
  }
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
