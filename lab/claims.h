#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/evaluate.h"
#include "lab/statistics.h"
#include "posenc/json.h"

namespace posenc::lab {

/// A finished job and its results.
struct Outcome {
  Job job = {};
  std::vector<Score> scores = {};
  std::int64_t parameters = 0;
  double loss = 0;     ///< of training: the mean over the last tenth of the steps
  double seconds = 0;  ///< of training

  /// The score at a size with an extension of RoPE, or nullptr.
  const Score* at(std::int64_t size, std::string_view extension = "none") const;
};
Json to_json(const Outcome& outcome);
Outcome outcome_from_json(const Json& json);

enum class Answer : std::uint8_t { kReproduced, kRefuted, kUndecided, kNotTestable };
/// "reproduced", "refuted", "undecided", "not testable here", as posenc.lab has them.
std::string_view name_of(Answer answer) noexcept;

/// On which side of the threshold a measure must be.
enum class Side : std::uint8_t { kAtMost, kAtLeast, kWithin };

/// A published claim, and how it is measured here. Every measure has one value per seed.
struct Claim {
  std::string_view id;
  std::string_view text;       ///< the claim in one sentence
  std::string_view source;     ///< who claims it
  std::string_view published;  ///< the published numbers
  std::string_view measure;    ///< what is compared here
  Side side = Side::kAtMost;
  double threshold = 0;  ///< kWithin: a bound on the absolute value
  std::string_view unit;
  /// The value for a seed, if the required jobs are done; otherwise `reason` may say why. Null: nothing of this size shows it.
  std::optional<double> (*value)(const std::vector<Outcome>& outcomes, std::uint64_t seed, std::string& reason);
};
const std::vector<Claim>& claims();

struct Verdict {
  const Claim* claim = nullptr;
  Answer answer = Answer::kNotTestable;
  std::vector<double> values = {};  ///< one per seed
  Estimate estimate = {};
  std::string reason = {};  ///< why it is not testable, or what is uncertain; may be empty
};

/// Reproduced: the whole interval is on the claim's side of the threshold. Refuted: it is on the other. Undecided: it
/// includes the threshold; or there are fewer than kFewestSeeds values, and the nearest is no farther from it than they are
/// from each other. Not testable: no seed has a value.
Verdict judge(const Claim& claim, const std::vector<Outcome>& outcomes);
std::vector<Verdict> judge(const std::vector<Outcome>& outcomes);
/// "≤ 1.03", "≥ 0.1", "within ±0.02".
std::string threshold_text(const Claim& claim);
/// "95% interval of 5 seeds", "range of 3 seeds", "one seed": what low and high of an estimate are.
std::string interval_text(const Verdict& verdict);

Json to_json(const Verdict& verdict);

}  // namespace posenc::lab
