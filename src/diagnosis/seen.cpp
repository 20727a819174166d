#include "diagnosis/seen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace posenc::diagnosis {
namespace {

// 8192 → "8,192"
std::string with_commas(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::string several(std::int64_t count, std::string_view word) {
  return fmt::format("{} {}{}", with_commas(count), word, count == 1 ? "" : "s");
}

bool is_rounding(const Rival& rival) { return rival.angles != AngleKind::kExact; }

// "llama3 scaling from none, factor 8 from 4, or original_length 8192 from 4096"
std::string what_cannot_be_told(const std::vector<const Rival*>& unseen) {
  constexpr std::size_t kShown = 3;
  std::string text;
  const std::size_t shown = std::min(unseen.size(), kShown);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == unseen.size() ? " or " : ", ";
    text += fmt::format("{} from {}", unseen[i]->from, unseen[i]->to);
  }
  if (unseen.size() > shown) text += fmt::format(" and {} more", unseen.size() - shown);
  return text;
}

// What these tokens leave open. Rounding to 16 bits is no reason to doubt the rest: it is named apart, and alone only if
// nothing else is open.
std::string what_is_open(const std::string& subject, std::vector<const Rival*> unseen) {
  const auto rounded =
      std::stable_partition(unseen.begin(), unseen.end(), [](auto* one) { return !is_rounding(*one); });
  if (rounded != unseen.begin()) {
    unseen.erase(rounded, unseen.end());
    return fmt::format("{} cannot tell {}", subject, what_cannot_be_told(unseen));
  }
  std::vector<std::string_view> names;
  for (const Rival* const one : unseen) names.push_back(one->name);
  return fmt::format(
      "{} exclude{} every other known mistake, but cannot tell float32 angles from those rounded to 16 bits ({})",
      subject, subject.starts_with("this ") ? "s" : "", fmt::join(names, ", "));
}

// A part of a long comparison, which suffices for most rivals: the last tokens of the first head.
Probe shortened(const Probe& probe, std::int64_t most) {
  if (count_of(probe.shape) <= most || is_bias(probe.scheme)) return probe;
  const Form form = prepare(probe.scheme, {.length = probe.where.length, .weights = probe.where.weights});
  const auto* const rotation = std::get_if<Rotation>(&form);
  if (rotation != nullptr && heads_of(*rotation) > 1) return probe;
  const std::int64_t features = probe.shape.back(0), tokens = probe.shape.back(1);
  const std::int64_t used = std::clamp<std::int64_t>(most / features, 1, tokens);
  const std::vector<std::int64_t>& ids = probe.where.positions.tokens;
  std::vector<std::int64_t> order(tokens);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t one, std::int64_t other) { return ids[one] > ids[other]; });
  order.resize(used);
  std::sort(order.begin(), order.end());  // as in the sequence: some rivals count tokens
  Probe part = probe;
  part.shape = {1, used, features};
  part.before.clear();
  part.where.positions.tokens.clear();
  for (const std::int64_t token : order) {
    const auto first = probe.before.begin() + static_cast<std::ptrdiff_t>(token * features);
    part.before.insert(part.before.end(), first, first + static_cast<std::ptrdiff_t>(features));
  }
  for (std::int64_t axis = 0; axis < probe.where.axes; ++axis) {
    for (const std::int64_t token : order) {
      part.where.positions.tokens.push_back(ids[axis * tokens + token]);
    }
  }
  return part;
}

// Each rival on a part of the tensors, and on all of them where the part does not show it.
std::vector<double> seen_of(const Probe& probe, const std::vector<Rival>& rivals) {
  constexpr std::int64_t kPart = 1 << 15, kWhole = 1 << 22;
  std::vector<double> seen = differences(shortened(probe, kPart), rivals);
  if (count_of(probe.shape) <= kPart) return seen;
  const Probe whole = shortened(probe, kWhole);
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    if (!(seen[i] > 1)) seen[i] = differences(whole, std::span(rivals).subspan(i, 1)).front();
  }
  return seen;
}

// Whether the same tensors in float32 would decide.
bool is_float32_enough(const Probe& probe) {
  Probe wide = probe;
  wide.tolerance = default_tolerance(DataType::kF32);
  wide.rounding = 3 * std::ldexp(1.0, -24);
  if (!(wide.rounding < probe.rounding)) return false;  // they are
  const std::vector<Rival> rivals = rivals_of(wide.scheme, rival_inputs(wide));
  const std::vector<double> seen = seen_of(wide, rivals);
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    if (!rivals[i].is_equivalent && !(seen[i] > 1)) return false;
  }
  return true;
}

std::string ways_out(const Probe& probe, CheckResult& result) {
  std::vector<std::string> ways;
  const bool is_a_bias = is_bias(probe.scheme);
  if (const std::optional<Enough> enough = enough_tokens(probe)) {
    result.deciding.push_back({enough->tokens, enough->first_positions});
    const std::int64_t first = enough->first_positions.front();
    if (is_a_bias) {
      ways.push_back(fmt::format("{} would", several(enough->tokens, "key")));
    } else if (probe.where.axes > 1) {
      std::vector<std::string> places;
      for (const std::int64_t place : enough->first_positions) places.push_back(with_commas(place));
      ways.push_back(fmt::format("{} whose positions on the {} axes start at {} would",
                                 several(enough->tokens, "token"), probe.where.axes, fmt::join(places, ", ")));
    } else {
      ways.push_back(
          fmt::format("{} from position {} on would", several(enough->tokens, "token"), with_commas(first)));
      const std::int64_t start = rival_inputs(probe).least_position;
      const std::int64_t all = first + enough->tokens - start;
      result.deciding.push_back({all, {start}});
      ways.push_back(fmt::format("{} from position {} on", several(all, "token"), with_commas(start)));
    }
  }
  result.is_float32_enough = is_float32_enough(probe);
  if (result.is_float32_enough) ways.push_back(ways.empty() ? "these in float32 would" : "these in float32");
  if (ways.empty()) return "a wider type, smaller values or a smaller tolerance would";
  return fmt::format("{}", fmt::join(ways, ", or "));
}

}  // namespace

void weigh(const Probe& probe, CheckResult& result) {
  const std::vector<Rival> rivals = rivals_of(probe.scheme, rival_inputs(probe));
  const std::vector<double> seen = seen_of(probe, rivals);
  std::vector<const Rival*> unseen;
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    if (seen[i] > 1) {
      result.excluded.push_back({rivals[i].name, seen[i], is_rounding(rivals[i])});
    } else if (!rivals[i].is_equivalent) {
      unseen.push_back(&rivals[i]);
      result.unseen.push_back({rivals[i].name, seen[i], is_rounding(rivals[i])});
    }
  }
  if (unseen.empty()) return;
  result.agreement = Agreement::kInconclusive;
  const bool is_a_bias = is_bias(probe.scheme);
  const std::int64_t count = is_a_bias ? probe.shape.back(0) : probe.shape.back(1);
  const std::string subject = count == 1 ? fmt::format("this {}", is_a_bias ? "key" : "token")
                                         : fmt::format("these {}", several(count, is_a_bias ? "key" : "token"));
  result.reason = fmt::format("{}; {}", what_is_open(subject, unseen), ways_out(probe, result));
}

}  // namespace posenc::diagnosis
