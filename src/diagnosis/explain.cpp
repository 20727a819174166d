#include "diagnosis/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "diagnosis/advice.h"
#include "diagnosis/element.h"
#include "diagnosis/parts.h"
#include "diagnosis/power.h"

namespace posenc::diagnosis {
namespace {

bool is_named(const Diagnosis& found) {
  const bool is_found = found.verdict == Verdict::kSure || found.verdict == Verdict::kLikely;
  return is_found && found.best && found.best->positions.empty();
}

// The tensors, or a part of them, as a probe, and what came after.
struct Piece {
  Probe probe;
  std::vector<double> after;
};

Piece whole_of(const Difference& from) {
  Piece part;
  part.probe = {.scheme = from.scheme,
                .shape = from.two.before.shape,
                .before = from.expected.before,
                .where = {from.positions, from.options.axes, from.length, from.options.weights},
                .tolerance = from.tolerance,
                .floor = from.floor,
                .rounding = from.rounding,
                .skipped = from.skipped};
  const ConstTensorView& after = from.two.after;
  for (std::int64_t i = 0; i < count_of(after.shape); ++i) {
    part.after.push_back(element(after, offset_of(index_of(i, after.shape), after.strides)));
  }
  return part;
}

// Some tokens of some vectors' worth of heads: [heads, tokens, features].
Piece selected(const Piece& whole, const std::vector<std::int64_t>& outers, const std::vector<std::int64_t>& tokens) {
  Piece part = whole;
  const std::int64_t features = whole.probe.shape.back(0), all = whole.probe.shape.back(1);
  part.probe.shape = {std::ssize(outers), std::ssize(tokens), features};
  part.probe.before.clear();
  part.after.clear();
  for (const std::int64_t outer : outers) {
    for (const std::int64_t token : tokens) {
      const std::ptrdiff_t at = (outer * all + token) * features;
      part.probe.before.insert(part.probe.before.end(), whole.probe.before.begin() + at,
                               whole.probe.before.begin() + at + features);
      part.after.insert(part.after.end(), whole.after.begin() + at, whole.after.begin() + at + features);
    }
  }
  std::vector<std::int64_t> ids;
  for (int axis = 0; axis < whole.probe.where.axes; ++axis) {
    for (const std::int64_t token : tokens) {
      ids.push_back(whole.probe.where.positions.tokens[axis * all + token]);
    }
  }
  part.probe.where.positions.tokens = std::move(ids);
  return part;
}

// Whether a part of the heads can be examined by itself.
bool has_like_heads(const Probe& probe) {
  const Form form = prepare(probe.scheme, {.length = probe.where.length, .weights = probe.where.weights});
  const auto* const rotation = std::get_if<Rotation>(&form);
  return !is_bias(probe.scheme) && (rotation == nullptr || heads_of(*rotation) == 1);
}

bool reproduces(const Expected& made, const Piece& part) {
  for (std::size_t i = 0; i < part.after.size(); ++i) {
    if (!part.probe.skipped.empty() && part.probe.skipped[i]) continue;
    const double leeway = made.leeway.empty() ? 0 : 1.5 * made.leeway[i];
    const double room = part.probe.tolerance * made.scale[i] + part.probe.floor + leeway;
    if (!(std::fabs(part.after[i] - made.values[i]) <= room)) return false;
  }
  return true;
}

// The known mistakes that reproduce a part, element by element.
struct Match {
  Rival rival;
  double difference = 0;  // from what is expected, in units of what is seen
  double residual = 0;
};
std::vector<Match> matches_in(const Piece& part) {
  constexpr std::int64_t kLarge = 1 << 16;
  std::vector<Match> found;
  // of large tensors, a few tokens of one head first
  std::optional<Piece> few;
  if (count_of(part.probe.shape) > kLarge && has_like_heads(part.probe)) {
    std::vector<std::int64_t> tokens;
    const std::int64_t count = part.probe.shape.back(1), step = std::max<std::int64_t>(1, count / 16);
    for (std::int64_t token = count - 1; token >= 0; token -= step) tokens.insert(tokens.begin(), token);
    few = selected(part, {0}, tokens);
  }
  const auto applied_to = [](const Rival& rival, const Piece& piece) {
    return expected_of(rival, piece.probe.before, piece.probe.shape, piece.probe.where);
  };
  for (const Rival& rival : rivals_of(part.probe.scheme, rival_inputs(part.probe))) {
    const bool is_by_token = rival.placing == Placing::kGiven;
    if (few && is_by_token && !reproduces(applied_to(rival, *few), *few)) continue;
    const Expected made = applied_to(rival, part);
    if (!reproduces(made, part)) continue;
    double left = 0, change = 0;
    for (std::size_t i = 0; i < part.after.size(); ++i) {
      if (!part.probe.skipped.empty() && part.probe.skipped[i]) continue;
      left += std::pow(part.after[i] - made.values[i], 2);
      change += std::pow(part.after[i] - part.probe.before[i], 2);
    }
    found.push_back(
        {rival, differences(part.probe, std::span(&rival, 1)).front(), change > 0 ? std::sqrt(left / change) : 0});
  }
  return found;
}

// Whether these tensors, which such a port made, could not have shown that it differs in something else as well.
bool has_unseen(const Rival& rival, const Piece& part) {
  if (rival.scheme.index() != part.probe.scheme.index()) return false;
  const auto* const t5 = std::get_if<T5>(&rival.scheme);
  // its table has other rows than the one at hand
  if (t5 != nullptr && part.probe.where.weights.shape[0] != t5->buckets) return true;
  Probe own = part.probe;
  own.scheme = rival.scheme;
  std::vector<Rival> others = rivals_of(own.scheme, rival_inputs(own));
  std::erase_if(others, [](const Rival& one) { return one.is_equivalent || one.angles != AngleKind::kExact; });
  const std::vector<double> apart = differences(own, others);
  return std::any_of(apart.begin(), apart.end(), [](double one) { return !(one > 1); });
}

// As diagnose would report such a port, as far as a convention can express it.
Diagnosis diagnosis_of(const std::vector<Match>& matches, const Piece& part, bool is_contested) {
  constexpr double kFarAway = 8;
  const Match& first = matches.front();
  const Rival& rival = first.rival;
  Diagnosis found;
  const bool is_sure = matches.size() == 1 && !is_contested && first.difference > kFarAway &&
                       part.probe.shape.back(1) >= 4 && !has_unseen(rival, part);
  found.verdict = is_sure ? Verdict::kSure : Verdict::kLikely;
  for (const Match& match : matches) found.remarks.push_back(match.rival.name);
  const bool is_plain_turn = rival.turning == Turning::kRight || rival.turning == Turning::kSwapped;
  const bool is_plain_place = rival.placing == Placing::kGiven || rival.placing == Placing::kReversed;
  const bool is_known = std::holds_alternative<Rope>(rival.scheme) ||
                        std::holds_alternative<Sinusoidal>(rival.scheme) ||
                        std::holds_alternative<Alibi>(rival.scheme) || std::holds_alternative<T5>(rival.scheme);
  if (!is_known || !is_plain_turn || !is_plain_place || !rival.axes.empty() || !rival.slopes.empty()) return found;
  Convention best{.scheme = rival.scheme,
                  .position_factor = static_cast<double>(rival.times),
                  .first_position = rival.shift,
                  .numerics = rival.angles,
                  .is_numerics_sure = rival.angles != AngleKind::kExact,
                  .is_swapped = rival.turning == Turning::kSwapped,
                  .is_reversed = rival.placing == Placing::kReversed,
                  .residual = first.residual};
  if (const auto* const rope = std::get_if<Rope>(&rival.scheme)) {
    best.magnitude = std::pow(prepare(*rope, {.length = part.probe.where.length}).magnitude, rival.times);
  }
  found.best = best;
  return found;
}

std::vector<std::string> advice_of(const std::vector<Match>& matches) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> lines;
  for (const Match& match : matches) {
    if (lines.size() == kMost) break;
    lines.push_back(lines.empty() ? match.rival.change : fmt::format("Or: {}", match.rival.change));
  }
  return lines;
}

class Explanation {
 public:
  Explanation(const Difference& difference, CheckResult& result)
      : from_(difference), result_(result), whole_(whole_of(difference)) {}

  void run() {
    const std::vector<Match> matches = matches_in(whole_);
    const bool has_parts = has_like_heads(whole_.probe);
    if (matches.empty() && is_bias(from_.scheme) && takes_other_heads()) return;
    if (matches.empty() && has_parts && (takes_other_heads() || is_in_heads(true) || is_in_tokens())) return;
    const Diagnosis blind =
        diagnose(from_.two.before, from_.two.after,
                 {.positions = from_.positions.tokens, .axes = from_.options.axes, .expected = &from_.scheme});
    const std::vector<std::string> advice = advice_on(from_.scheme, blind, from_.two.before.shape.back(0));
    if (blind.verdict == Verdict::kUnchanged) return take(blind, advice);
    if (!matches.empty()) return take_match(matches, blind, advice);
    if (is_named(blind) || !has_parts || !is_in_heads(false)) take(blind, advice);
  }

 private:
  // A known mistake that reproduces everything.
  void take_match(std::vector<Match> matches, const Diagnosis& blind, const std::vector<std::string>& advice) {
    // the same thing may have been found in two ways
    const auto same = std::find_if(matches.begin(), matches.end(), [&](const Match& match) {
      return is_named(blind) && advice.size() == 1 && advice.front().starts_with(match.rival.change);
    });
    if (same == matches.end()) {
      return take(diagnosis_of(matches, whole_, blind.verdict == Verdict::kSure), advice_of(matches));
    }
    std::rotate(matches.begin(), same, same + 1);
    std::vector<std::string> lines = advice_of(matches);
    lines.front() = advice.front();
    take(blind, lines);
    if (matches.size() > 1) result_.diagnosis.verdict = Verdict::kLikely;
  }

  void take(const Diagnosis& found, const std::vector<std::string>& advice) {
    result_.diagnosis = found;
    result_.advice = advice;
  }

  // Each head has what belongs to another.
  bool takes_other_heads() {
    const Extents& shape = from_.two.before.shape;
    if (shape.rank < 3 || shape.back(2) < 2) return false;
    const std::int64_t heads = shape.back(2), size = shape.back(0) * shape.back(1);
    const bool is_a_bias = is_bias(from_.scheme);
    const std::int64_t whole = heads * size, batches = count_of(shape) / whole;
    const auto holds = [&](std::int64_t to, std::int64_t of) {
      for (std::int64_t i = 0; i < batches * size; ++i) {
        const std::int64_t first = i / size * whole + i % size;
        const std::size_t at = first + of * size;
        const double leeway = from_.expected.leeway.empty() ? 0 : 1.5 * from_.expected.leeway[at];
        const double room = from_.tolerance * from_.expected.scale[at] + from_.floor + leeway;
        const std::size_t here = first + to * size;
        if (!from_.skipped.empty() && (from_.skipped[at] || from_.skipped[here])) continue;
        // of a bias, what is added is another head's
        const double own = is_a_bias ? from_.expected.before[here] - from_.expected.before[at] : 0;
        const double size_here = is_a_bias ? from_.tolerance * from_.expected.scale[here] : 0;
        if (!(std::fabs(whole_.after[here] - from_.expected.values[at] - own) <= room + size_here)) return false;
      }
      return true;
    };
    std::vector<std::int64_t> order;
    bool is_sure = true;
    for (std::int64_t head = 0; head < heads; ++head) {
      std::vector<std::int64_t> sources;
      for (std::int64_t source = 0; source < heads; ++source) {
        if (holds(head, source)) sources.push_back(source);
      }
      if (sources.empty()) return false;
      // slopes may be too small for heads to be told apart
      is_sure = is_sure && (!is_a_bias || sources.size() == 1);
      const bool is_own = is_a_bias && std::find(sources.begin(), sources.end(), head) != sources.end();
      order.push_back(is_own ? head : sources.front());
    }
    if (std::is_sorted(order.begin(), order.end())) return false;  // equal heads, or in place
    result_.where = fmt::format("heads are in another order: {}", fmt::join(order, " "));
    result_.diagnosis = {.verdict = is_sure ? Verdict::kSure : Verdict::kLikely,
                         .remarks = {"each head is right, but at another place"}};
    result_.advice = {fmt::format("Heads are permuted: at the places 0 to {} are the heads {}. Put them in order",
                                  heads - 1, fmt::join(order, " "))};
    return true;
  }

  // Only some heads, or sequences, differ.
  bool is_in_heads(bool needs_match) {
    const HeadParts parts = head_parts(from_.misses, from_.two.before.shape);
    if (parts.outers.empty()) return false;
    std::vector<std::int64_t> tokens(from_.two.before.shape.back(1));
    std::iota(tokens.begin(), tokens.end(), 0);
    const Piece part = selected(whole_, parts.outers, tokens);
    const std::vector<Match> matches = matches_in(part);
    if (matches.empty() && needs_match) return false;
    result_.heads = parts.heads;
    result_.where = parts.text;
    tell_part(part, matches, parts.name);
    return true;
  }

  // Only some tokens differ, and a known mistake explains them.
  bool is_in_tokens() {
    const TokenParts parts = token_parts(from_.misses, from_.two.before.shape);
    if (parts.tokens.empty()) return false;
    const Extents& shape = from_.two.before.shape;
    std::vector<std::int64_t> outers(count_of(shape) / (shape.back(0) * shape.back(1)));
    std::iota(outers.begin(), outers.end(), 0);
    const Piece part = selected(whole_, outers, parts.tokens);
    const std::vector<Match> matches = matches_in(part);
    if (matches.empty()) return false;
    result_.tokens = parts.tokens;
    result_.where = parts.text;
    tell_part(part, matches, parts.name);
    return true;
  }

  void tell_part(const Piece& part, const std::vector<Match>& matches, const std::string& name) {
    if (!matches.empty()) {
      take(diagnosis_of(matches, part, false), advice_of(matches));
    } else {
      const TypedCopy before(part.probe.before, part.probe.shape, from_.two.before.type);
      const TypedCopy after(part.after, part.probe.shape, from_.two.after.type);
      const Diagnosis blind = diagnose(
          before.view(), after.view(),
          {.positions = part.probe.where.positions.tokens, .axes = part.probe.where.axes, .expected = &from_.scheme});
      take(blind, advice_on(from_.scheme, blind, from_.two.before.shape.back(0)));
    }
    for (std::string& line : result_.advice) line = fmt::format("{}: {}", name, line);
  }

  const Difference& from_;
  CheckResult& result_;
  Piece whole_;
};

}  // namespace

void explain(const Difference& difference, CheckResult& result) { Explanation(difference, result).run(); }

}  // namespace posenc::diagnosis
