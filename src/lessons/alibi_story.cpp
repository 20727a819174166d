#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "lessons/quantities.h"
#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"

namespace posenc::lessons {
namespace {

// The slope of a head, as the library has it: the penalty of distance 1.
double slope_of_head(const Bias& form, std::int64_t head) { return -bias_at(form, head, 1, 0); }

CellTerms bias_terms(const Bias& form, std::int64_t head, std::int64_t query, std::int64_t key) {
  return {"−slope · distance",
          {{{fmt::format("−slope{}", head), -slope_of_head(form, head)},
            {"distance", static_cast<double>(query - key)}}}};
}

// The weights of the last query if all scores are equal: the softmax of its biases.
std::vector<CellTerms> weights_of_last_query(const Bias& form, std::int64_t head, std::int64_t length) {
  std::vector<CellFactor> powers;
  double sum = 0;
  for (std::int64_t key = 0; key < length; ++key) {
    const double bias = bias_at(form, head, length - 1, key);
    powers.push_back({fmt::format("e^({})", shown_number(bias, 4)), std::exp(bias)});
    sum += powers.back().value;
  }
  std::vector<CellTerms> cells;
  for (const CellFactor& power : powers) {
    cells.push_back({"e^bias / Σ e^bias", {{power}}, "", CellFactor{"Σ", sum}, powers});
  }
  return cells;
}

}  // namespace

Story tell_alibi(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const Alibi scheme{.heads = content.integer("heads")};
  const Bias form = prepare(scheme);
  const std::int64_t length = content.integer("length"), far = content.integer("far");
  const std::vector<std::int64_t> shown = content.integers("shown_heads");
  std::vector<std::int64_t> positions;
  for (std::int64_t p = 0; p < length; ++p) positions.push_back(p);
  const std::vector<std::string> labels = as_labels(positions);
  story.say("heads", std::to_string(scheme.heads));
  story.say("first", std::to_string(shown.front()));
  story.say("last", std::to_string(shown.back()));

  story.step("slopes");
  story.formula("score(m, n) − slope_h · |m − n|");
  std::vector<CellTerms> slopes;
  for (std::int64_t h = 0; h < scheme.heads; ++h) {
    const double slope = slope_of_head(form, h);
    slopes.push_back({"2^(−8(h+1)/heads)", {{{fmt::format("2^(−8·{}/{})", h + 1, scheme.heads), slope}}}});
    slopes.push_back(
        {"ln 2 / slope", {{{"ln 2", std::numbers::ln2}}}, "", CellFactor{fmt::format("slope{}", h), slope}});
  }
  StoryMatrix table =
      computed({"H", "H: the heads", numbered("head", scheme.heads), {"slope", "half-life"}}, std::move(slopes));
  table.digits = 4;
  story.show(table);

  story.step("bias");
  constexpr double kMasked = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values;
  std::vector<CellTerms> cells;
  for (const std::int64_t query : positions) {
    for (const std::int64_t key : positions) {
      values.push_back(key <= query ? bias_at(form, shown.front(), query, key) : kMasked);
      cells.push_back(bias_terms(form, shown.front(), query, key));
    }
  }
  story.show(computed({"B", fmt::format("B: bias of head {}; row query, column key", shown.front()), labels, labels},
                      std::move(values), std::move(cells)));

  story.step("weights");
  std::vector<CellTerms> weights;
  std::vector<std::string> heads;
  for (const std::int64_t head : shown) {
    heads.push_back(fmt::format("head{}", head));
    for (CellTerms& cell : weights_of_last_query(form, head, length)) weights.push_back(std::move(cell));
  }
  story.show(computed({"A", "A: weights of the last query for equal scores; column key", heads, labels},
                      std::move(weights)));
  story.show({fact("weight of each key without a bias", 1.0 / static_cast<double>(length))});

  story.step("relative");
  const double far_bias = bias_at(form, shown.back(), far, 0);
  story.say("far", std::to_string(far));
  story.say("far_bias", far_bias, 1);
  const double spread = std::fabs(bias_at(form, shown.back(), far, far - 3) - bias_at(form, shown.back(), 3, 0));
  story.show({residual(fmt::format("difference of the bias at distance 3, at position 3 and at {}", far), spread)});

  story.step("other");
  const Alibi other{.heads = content.integer("other_heads")};
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(other.heads)));
  story.say("other", std::to_string(other.heads));
  story.say("power", std::to_string(power));
  story.say("twice", std::to_string(2 * power));
  const Bias other_form = prepare(other);
  std::vector<CellTerms> compared;
  for (std::int64_t h = 0; h < other.heads; ++h) {
    const std::string exponent =
        h < power ? fmt::format("−8·{}/{}", h + 1, power) : fmt::format("−8·{}/{}", 2 * (h - power) + 1, 2 * power);
    compared.push_back(
        {fmt::format("2^({})", exponent), {{{fmt::format("2^({})", exponent), slope_of_head(other_form, h)}}}});
    const std::string unchanged = fmt::format("2^(−8·{}/{})", h + 1, other.heads);
    const double naive = std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(other.heads));
    compared.push_back({"the power-of-two formula, unchanged", {{{unchanged, naive}}}});
  }
  StoryMatrix both = computed({"N",
                               fmt::format("N: slopes of {} heads", other.heads),
                               numbered("head", other.heads),
                               {"slope", "unchanged-formula"}},
                              std::move(compared));
  both.digits = 4;
  story.show(both);
  return story.finish();
}

}  // namespace posenc::lessons
