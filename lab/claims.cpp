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

}  // namespace

const std::vector<Claim>& claims() {
  static const std::vector<Claim> all = {
      {"alibi-extrapolates", "ALiBi keeps its perplexity far past the trained length.", "Press et al. 2022, Table 2",
       "19.73 at 512 tokens, 18.40 at 3,512", "perplexity at 8 times the trained length over that at 1 time",
       Side::kAtMost, 1.03, "ratio",
       [](const Outcomes& runs, std::uint64_t seed, std::string&) { return growth(runs, "alibi", seed); }},
      {"alibi-sliding-window", "With a sliding window ALiBi's perplexity does not improve with length.",
       "Press et al. 2022, Tables 13 to 15", "17.98 at 512 tokens, 18.30 at 3,072",
       "log perplexity of the last quarter of positions, 8 times minus 1 time", Side::kAtLeast, -0.02, "nats",
       alibi_in_a_sliding_window},
      {"rope-breaks", "RoPE breaks past its trained length.", "Press et al. 2022, Table 2",
       "20.07 at 512 tokens, 35.54 at 3,512", "perplexity at 8 times the trained length over that at 1 time",
       Side::kAtLeast, 1.3, "ratio",
       [](const Outcomes& runs, std::uint64_t seed, std::string&) { return growth(runs, "rope", seed); }},
      {"sinusoidal-breaks", "Sinusoidal positions break past the trained length.", "Press et al. 2022, Table 2",
       "20.05 at 512 tokens, 178.97 at 3,512", "perplexity at 8 times the trained length over that at 1 time",
       Side::kAtLeast, 1.1, "ratio",
       [](const Outcomes& runs, std::uint64_t seed, std::string&) { return growth(runs, "sinusoidal", seed); }},
      {"t5-between", "T5's bias extrapolates better than RoPE.", "Press et al. 2022, Table 2",
       "at 3,512 tokens, T5 22.91 and RoPE 35.54", "log of the growth of perplexity at 8 times, RoPE minus T5",
       Side::kAtLeast, 0.1, "nats", rope_grows_more_than_t5},
      {"kerple-extrapolates", "KERPLE (log) extrapolates at least as well as ALiBi.", "Chi et al. 2022",
       "no number read in a source", "log perplexity at 8 times the trained length, KERPLE minus ALiBi",
       Side::kAtMost, 0, "nats",
       [](const Outcomes& runs, std::uint64_t seed, std::string&) {
         return apart(runs, seed, "kerple", "alibi", 8);
       }},
      {"learned-equals-sinusoidal", "Learned and sinusoidal positions are equally good in range.",
       "Vaswani et al. 2017, Table 3 (E)", "perplexity 4.92 and 4.92",
       "log perplexity at the trained length, learned minus sinusoidal", Side::kWithin, 0.02, "nats",
       [](const Outcomes& runs, std::uint64_t seed, std::string&) {
         return apart(runs, seed, "learned", "sinusoidal", 1);
       }},
      {"nope-causal", "A causal decoder without positions nearly matches one with them.",
       "Haviv et al. 2022, Table 1", "none 20.97, sinusoidal 20.16 (0.04 nats)",
       "log perplexity at the trained length, none minus sinusoidal", Side::kAtMost, 0.05, "nats",
       [](const Outcomes& runs, std::uint64_t seed, std::string&) {
         return apart(runs, seed, "none", "sinusoidal", 1);
       }},
      {"nope-bidirectional", "A masked language model without positions collapses.", "Haviv et al. 2022, Table 4",
       "none 147.18, sinusoidal 4.07 (3.6 nats)",
       "log perplexity of hidden bytes at the trained length, none minus sinusoidal", Side::kAtLeast, 0.3, "nats",
       [](const Outcomes& runs, std::uint64_t seed, std::string&) {
         return apart(runs, seed, "none", "sinusoidal", 1, "masked-text");
       }},
      {"order-needs-position", "An encoder without positions can tell order only by chance.",
       "follows from permutation equivariance", "exactly 0.5",
       "share of right answers to which of two symbols comes first, minus 0.5", Side::kWithin, 0.05, "",
       order_by_chance},
      {"copy-alibi", "ALiBi copies strings longer than in training better than RoPE.",
       "Kazemnejad et al. 2023, result files", "exact match 28.9% and 0.0% (copy, rsc)",
       "exact match past the trained size, ALiBi minus RoPE", Side::kAtLeast, 0.1, "",
       [](const Outcomes& runs, std::uint64_t seed, std::string& why) {
         return copies_longer(runs, seed, "alibi", false, "rope", why);
       }},
      {"copy-nope", "A decoder without positions copies longer strings better than RoPE.",
       "Kazemnejad et al. 2023, result files", "exact match 98.6% and 0.0% (copy, rsc)",
       "exact match past the trained size, none minus RoPE", Side::kAtLeast, 0.1, "",
       [](const Outcomes& runs, std::uint64_t seed, std::string& why) {
         return copies_longer(runs, seed, "none", false, "rope", why);
       }},
      {"copy-t5", "T5's bias copies longer strings better than RoPE.", "Kazemnejad et al. 2023, result files",
       "exact match 77.1% and 0.0% (copy, rsc)", "exact match past the trained size, T5 minus RoPE", Side::kAtLeast,
       0.1, "",
       [](const Outcomes& runs, std::uint64_t seed, std::string& why) {
         return copies_longer(runs, seed, "t5", false, "rope", why);
       }},
      {"random-positions", "Random positions help to generalise to longer strings.", "Ruoss et al. 2023",
       "+12.0% accuracy, mean of 15 tasks",
       "exact match of copy past the trained size, sinusoidal with minus without", Side::kAtLeast, 0.05, "",
       [](const Outcomes& runs, std::uint64_t seed, std::string& why) {
         return copies_longer(runs, seed, "sinusoidal", true, "sinusoidal", why);
       }},
      {"linear-zero-shot", "Position interpolation without fine-tuning doubles the perplexity.", "Chen et al. 2023",
       "7.20 at 2,048 tokens, 16.10 at 8,192", "perplexity at 4 times with linear scaling over that at 1 time",
       Side::kAtLeast, 2, "ratio", linear_at_once},
      {"linear-fine-tuned", "200 steps of fine-tuning repair position interpolation.", "Chen et al. 2023",
       "7.20 at 2,048 tokens, 7.12 at 8,192 after 200 steps",
       "perplexity at 4 times after 200 steps over that at 1 time before", Side::kAtMost, 1.05, "ratio",
       linear_after_tuning},
      {"ntk-zero-shot", "NTK-aware scaling extends RoPE without fine-tuning.", "bloc97 2023",
       "no number read (Peng et al. 2023, Table 1, is of a fine-tuned model)",
       "log perplexity at 4 times, ntk minus unscaled", Side::kAtMost, -0.02, "nats", ntk_at_once},
      {"yarn-far-out", "YaRN is the flattest of them far out.", "Zhu et al. 2023 (PoSE), Table 6",
       "at 8 times, NTK 550 and YaRN 5.83", "log perplexity of the last quarter at 8 times, yarn minus ntk",
       Side::kAtMost, -0.02, "nats", yarn_far_out},
      {"induction-fails", "Induction with RoPE fails past twice the trained length.", "Gu and Dao 2023, Table 11",
       "83.6% at 256, 18.4% at 1,024", "exact match at 4 times the trained size", Side::kAtMost, 0.5, "",
       induction_past_twice},
      {"translation", "RoPE is slightly better than sinusoidal positions in translation.", "Su et al. 2021",
       "BLEU 27.5 and 27.3", "none", Side::kWithin, 0, "", nullptr},
      {"longrope", "LongRoPE's search beats PI and YaRN at 64 k tokens.", "Ding et al. 2024, Table 3",
       "3.22 against 72.54 and 4.15, not fine-tuned", "none", Side::kAtMost, 0, "", nullptr},
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
  const Json* const parameters = json.find("parameters");
  const Json* const scores = json.find("scores");
  if (job == nullptr || parameters == nullptr || parameters->as<std::int64_t>() == nullptr || scores == nullptr ||
      scores->as<Json::Array>() == nullptr) {
    raise("lab: a result lacks its job, its parameters or its scores");
  }
  const auto number = [&](std::string_view name) {
    const Json* const found = json.find(name);
    if (found != nullptr && found->as<double>() != nullptr) return *found->as<double>();
    return found != nullptr && found->as<std::int64_t>() != nullptr ? static_cast<double>(*found->as<std::int64_t>())
                                                                    : 0.0;
  };
  outcome.job = job_from_json(*job);
  outcome.parameters = *parameters->as<std::int64_t>();
  outcome.loss = number("loss");
  outcome.seconds = number("seconds");
  for (const Json& score : *scores->as<Json::Array>()) outcome.scores.push_back(score_from_json(score));
  return outcome;
}

}  // namespace posenc::lab
