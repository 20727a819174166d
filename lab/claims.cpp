#include "lab/claims.h"

#include <cmath>
#include <functional>

#include "posenc/error.h"

namespace posenc::lab {
namespace {

using Outcomes = std::vector<Outcome>;
using Value = std::optional<double>;

const Outcome* find_job(const Outcomes& outcomes, std::string_view task, std::string_view scheme, std::uint64_t seed,
                        bool random = false) {
  for (const Outcome& outcome : outcomes) {
    const Job& job = outcome.job;
    if (job.task == task && job.shape.scheme == scheme && job.seed == seed && job.parent.empty() &&
        job.extensions.empty() && (job.shape.random_positions > 0) == random) {
      return &outcome;
    }
  }
  return nullptr;
}

// A number of the score at `times` times the trained size.
template <class Number>
Value at(const Outcome* found, std::int64_t times, Number number, std::string_view extension = "none") {
  const Score* const score = found != nullptr ? found->at(found->job.size * times, extension) : nullptr;
  return score != nullptr ? Value(std::invoke(number, *score)) : Value();
}

Value difference(Value first, Value second) { return first && second ? Value(*first - *second) : Value(); }
Value ratio(Value log_first, Value log_second) {
  const Value nats = difference(log_first, log_second);
  return nats ? Value(std::exp(*nats)) : Value();
}

// The negative log-likelihood of text (log perplexity) at `times` times the trained length.
Value text_nll(const Outcomes& outcomes, std::string_view scheme, std::uint64_t seed, std::int64_t times,
               std::string_view task = "text") {
  return at(find_job(outcomes, task, scheme, seed), times, &Score::nll);
}

Value growth(const Outcomes& outcomes, std::string_view scheme, std::uint64_t seed) {
  return ratio(text_nll(outcomes, scheme, seed, 8), text_nll(outcomes, scheme, seed, 1));
}

Value alibi_in_a_sliding_window(const Outcomes& outcomes, std::uint64_t seed, std::string&) {
  const Outcome* const found = find_job(outcomes, "text", "alibi", seed);
  return difference(at(found, 8, &Score::last_quarter), at(found, 1, &Score::last_quarter));
}

Value rope_grows_more_than_t5(const Outcomes& outcomes, std::uint64_t seed, std::string&) {
  const Value rope = growth(outcomes, "rope", seed), t5 = growth(outcomes, "t5", seed);
  return rope && t5 ? Value(std::log(*rope) - std::log(*t5)) : Value();
}

// The difference of two schemes at `times` times the trained length, in nats.
Value apart(const Outcomes& outcomes, std::uint64_t seed, std::string_view one, std::string_view other,
            std::int64_t times, std::string_view task = "text") {
  return difference(text_nll(outcomes, one, seed, times, task), text_nll(outcomes, other, seed, times, task));
}

Value order_by_chance(const Outcomes& outcomes, std::uint64_t seed, std::string& reason) {
  const Value without = at(find_job(outcomes, "order", "none", seed), 1, &Score::accuracy),
              with = at(find_job(outcomes, "order", "rope", seed), 1, &Score::accuracy);
  if (!without || !with) return {};
  if (*with >= 0.75) return *without - 0.5;
  reason = "with rope the task was not learned either";  // a task that no model learns shows nothing
  return {};
}

// Exact match, averaged over the sizes beyond the trained one.
Value past_training(const Outcomes& outcomes, std::string_view task, std::string_view scheme, std::uint64_t seed,
                    bool random, std::string& reason) {
  const Outcome* const found = find_job(outcomes, task, scheme, seed, random);
  if (found == nullptr) return {};
  const Score* const trained = found->at(found->job.size);
  // A model that fails at the trained size cannot show how well it extrapolates; random positions may cost accuracy.
  if (trained == nullptr || (!random && trained->accuracy() < 0.5)) {
    reason = std::string(scheme) + " did not learn the task at the trained size";
    return {};
  }
  double sum = 0;
  int count = 0;
  for (const Score& score : found->scores) {
    if (score.size <= found->job.size || score.extension != "none") continue;
    sum += score.accuracy();
    ++count;
  }
  return count > 0 ? Value(sum / count) : Value();
}

Value copies_longer(const Outcomes& outcomes, std::uint64_t seed, std::string_view one, bool random,
                    std::string_view other, std::string& reason) {
  const Value first = past_training(outcomes, "copy", one, seed, random, reason),
              second = past_training(outcomes, "copy", other, seed, false, reason);
  return difference(first, second);
}

// RoPE's extensions need pairs that rotate often within the trained length: YaRN keeps those unchanged.
const Outcome* extended(const Outcomes& outcomes, std::uint64_t seed, std::string& reason) {
  const Outcome* found = nullptr;
  for (const Outcome& outcome : outcomes) {
    const Job& job = outcome.job;
    if (job.task == "text" && job.shape.scheme == "rope" && job.seed == seed && !job.extensions.empty())
      found = &outcome;
  }
  if (found == nullptr) return nullptr;
  if (found->job.shape.context >= 256 && found->job.shape.head_width() >= 32) return found;
  reason = "needs a trained length of 256 and 32 features in a head";
  return nullptr;
}

Value linear_at_once(const Outcomes& outcomes, std::uint64_t seed, std::string& reason) {
  const Outcome* const found = extended(outcomes, seed, reason);
  return ratio(at(found, 4, &Score::nll, "linear"), at(found, 1, &Score::nll));
}
Value ntk_at_once(const Outcomes& outcomes, std::uint64_t seed, std::string& reason) {
  const Outcome* const found = extended(outcomes, seed, reason);
  return difference(at(found, 4, &Score::nll, "ntk"), at(found, 4, &Score::nll));
}
Value yarn_far_out(const Outcomes& outcomes, std::uint64_t seed, std::string& reason) {
  const Outcome* const found = extended(outcomes, seed, reason);
  return difference(at(found, 8, &Score::last_quarter, "yarn"), at(found, 8, &Score::last_quarter, "ntk"));
}

Value linear_after_tuning(const Outcomes& outcomes, std::uint64_t seed, std::string&) {
  for (const Outcome& tuned : outcomes) {
    if (tuned.job.parent.empty() || tuned.job.seed != seed) continue;
    if (!std::holds_alternative<LinearScaling>(tuned.job.shape.scaling)) continue;
    for (const Outcome& parent : outcomes) {
      if (parent.job.name != tuned.job.parent) continue;
      const Value grown = ratio(at(&tuned, 1, &Score::nll), at(&parent, 1, &Score::nll));
      if (grown) return grown;
    }
  }
  return {};
}

Value induction_past_twice(const Outcomes& outcomes, std::uint64_t seed, std::string& reason) {
  const Outcome* const found = find_job(outcomes, "induction", "rope", seed);
  const Value near = at(found, 1, &Score::accuracy), far = at(found, 4, &Score::accuracy);
  if (!near || !far) return {};
  if (*near >= 0.8) return far;
  reason = "the task was not learned at the trained size";
  return {};
}

Value growth_of_alibi(const Outcomes& outcomes, std::uint64_t seed, std::string&) {
  return growth(outcomes, "alibi", seed);
}
Value growth_of_rope(const Outcomes& outcomes, std::uint64_t seed, std::string&) {
  return growth(outcomes, "rope", seed);
}
Value growth_of_sinusoidal(const Outcomes& outcomes, std::uint64_t seed, std::string&) {
  return growth(outcomes, "sinusoidal", seed);
}
Value kerple_minus_alibi(const Outcomes& outcomes, std::uint64_t seed, std::string&) {
  return apart(outcomes, seed, "kerple", "alibi", 8);
}
Value learned_minus_sinusoidal(const Outcomes& outcomes, std::uint64_t seed, std::string&) {
  return apart(outcomes, seed, "learned", "sinusoidal", 1);
}
Value none_minus_sinusoidal(const Outcomes& outcomes, std::uint64_t seed, std::string&) {
  return apart(outcomes, seed, "none", "sinusoidal", 1);
}
// Frequencies of letters alone give an English text 3.1 nats.
Value none_minus_sinusoidal_masked(const Outcomes& outcomes, std::uint64_t seed, std::string& reason) {
  constexpr double kLearned = 2.9;
  const Value with = text_nll(outcomes, "sinusoidal", seed, 1, "masked-text");
  if (!with || *with <= kLearned) return apart(outcomes, seed, "none", "sinusoidal", 1, "masked-text");
  reason = "the one with positions did not learn the task either, only how frequent letters are";
  return {};
}
Value alibi_copies_longer(const Outcomes& outcomes, std::uint64_t seed, std::string& reason) {
  return copies_longer(outcomes, seed, "alibi", false, "rope", reason);
}
Value none_copies_longer(const Outcomes& outcomes, std::uint64_t seed, std::string& reason) {
  return copies_longer(outcomes, seed, "none", false, "rope", reason);
}
Value t5_copies_longer(const Outcomes& outcomes, std::uint64_t seed, std::string& reason) {
  return copies_longer(outcomes, seed, "t5", false, "rope", reason);
}
Value random_positions_copy_longer(const Outcomes& outcomes, std::uint64_t seed, std::string& reason) {
  return copies_longer(outcomes, seed, "sinusoidal", true, "sinusoidal", reason);
}

}  // namespace

const std::vector<Claim>& claims() {
  static const std::vector<Claim> all = {
#include "lab_claims.inc"
  };
  return all;
}

const Score* Outcome::at(std::int64_t size, std::string_view extension) const {
  for (const Score& score : scores) {
    if (score.size == size && score.extension == extension) return &score;
  }
  return nullptr;
}

Json to_json(const Outcome& outcome) {
  Json::Array scores;
  for (const Score& score : outcome.scores) scores.push_back(to_json(score));
  return Json::Object{{"job", to_json(outcome.job)},
                      {"parameters", outcome.parameters},
                      {"loss", outcome.loss},
                      {"seconds", outcome.seconds},
                      {"scores", scores}};
}

Outcome outcome_from_json(const Json& json) {
  Outcome outcome;
  const Json* const job = json.find("job");
  const auto* const parameters = json.find<std::int64_t>("parameters");
  const auto* const scores = json.find<Json::Array>("scores");
  if (job == nullptr || parameters == nullptr || scores == nullptr) {
    raise("lab: a result lacks its job, its parameters or its scores");
  }
  const auto number = [&](std::string_view name) {
    if (const auto* const found = json.find<double>(name)) return *found;
    const auto* const whole = json.find<std::int64_t>(name);
    return whole == nullptr ? 0.0 : static_cast<double>(*whole);
  };
  outcome.job = job_from_json(*job);
  outcome.parameters = *parameters;
  outcome.loss = number("loss");
  outcome.seconds = number("seconds");
  for (const Json& score : *scores) outcome.scores.push_back(score_from_json(score));
  return outcome;
}

}  // namespace posenc::lab
