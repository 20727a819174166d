#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lessons/quantities.h"
#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"
#include "posenc/apply.h"
#include "posenc/half.h"

namespace posenc::lessons {
namespace {

// An angle as float32 code computes it: the frequency is rounded, and so is its product with the position.
struct NarrowAngle {
  double exact = 0, rounded_frequency = 0, narrow = 0;
};

NarrowAngle narrow_angle(double frequency, std::int64_t position) {
  const auto rounded = static_cast<float>(frequency);
  const float product = static_cast<float>(position) * rounded;
  const auto at = static_cast<double>(position);
  return {at * frequency, at * static_cast<double>(rounded), static_cast<double>(product)};
}

// The largest error over a row of sines and cosines that are computed exactly and rounded once to float32.
double error_of_one_rounding(const Rotation& form, std::int64_t position) {
  const std::int64_t pairs = pairs_of(form);
  const auto all = static_cast<std::size_t>(2 * pairs);
  std::vector<float> narrow(all);
  std::vector<double> wide(all);
  const auto row = [&](auto& values, std::int64_t from) { return view(values.data() + from, {1, pairs}); };
  tabulate(row(narrow, 0), row(narrow, pairs), {.first = position}, form);
  tabulate(row(wide, 0), row(wide, pairs), {.first = position}, form);
  double largest = 0;
  for (std::size_t i = 0; i < all; ++i)
    largest = std::max(largest, std::fabs(static_cast<double>(narrow[i]) - wide[i]));
  return largest;
}

double in_bfloat16(std::int64_t position) { return to_double(to_bfloat16(static_cast<double>(position))); }

std::int64_t distinct_in_bfloat16(std::int64_t positions) {
  std::set<double> seen;
  for (std::int64_t position = 0; position < positions; ++position) seen.insert(in_bfloat16(position));
  return static_cast<std::int64_t>(seen.size());
}

StoryMatrix scores_of_one_pair(const Rope& scheme, std::int64_t pair, std::int64_t offset,
                               const std::vector<std::int64_t>& starts) {
  const double frequency = frequency_at(prepare(scheme), pair);
  std::vector<double> values;
  std::vector<CellTerms> cells;
  for (const std::int64_t start : starts) {
    const Pair query = turned(scheme, pair, start + offset, {1, 0}), key = turned(scheme, pair, start, {1, 0});
    values.push_back(query.a * key.a + query.b * key.b);
    cells.push_back({"cos(offset · ω)",
                     {{{"offset", static_cast<double>(offset)}, {fmt::format("ω{}", pair), frequency}}},
                     "cos"});
    const double at_query = narrow_angle(frequency, start + offset).narrow;
    const double at_key = narrow_angle(frequency, start).narrow;
    values.push_back(std::cos(at_query - at_key));
    cells.push_back({"cos(angle of the query − angle of the key)",
                     {{{"angle of the query", at_query}}, {{"−angle of the key", -at_key}}},
                     "cos"});
  }
  StoryMatrix matrix =
      computed({"R",
                fmt::format("R: score of pair {}, the query {} positions after the key", pair, offset),
                as_labels(starts),
                {"exact", "float32"}},
               std::move(values), std::move(cells));
  matrix.digits = 4;
  return matrix;
}

StoryMatrix bfloat16_positions(const std::vector<std::int64_t>& positions) {
  std::vector<CellTerms> cells;
  for (const std::int64_t position : positions) {
    const double step = std::exp2(std::max(0.0, std::floor(std::log2(static_cast<double>(position))) - 7));
    cells.push_back({"step · whole number", {{{"step", step}, {"whole number", in_bfloat16(position) / step}}}});
  }
  StoryMatrix matrix =
      computed({"B", "B: positions as bfloat16 holds them", as_labels(positions), {"bfloat16"}}, std::move(cells));
  matrix.digits = 0;
  return matrix;
}

}  // namespace

Story tell_float32_angles(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const Rope scheme{.dims = content.integer("dims"), .base = content.number("base")};
  const Rotation form = prepare(scheme);
  const std::int64_t position = content.integer("position"), pair = content.integer("pair");
  const std::int64_t offset = content.integer("offset");
  const std::vector<std::int64_t> pairs = content.integers("pairs");
  const double right = turned(scheme, pair, position, {1, 0}).b;
  const double wrong = sine_of(narrow_angle(frequency_at(form, pair), position).narrow);
  story.say("position", std::to_string(position));
  story.say("pair", std::to_string(pair));
  story.say("dims", std::to_string(scheme.dims));
  story.say("offset", std::to_string(offset));
  story.say("right", right, 4);
  story.say("wrong", wrong, 4);

  story.step("puzzle");
  story.show({fact("sine of the exact angle", right, 6), fact("sine of the float32 angle", wrong, 6)});

  story.step("angles");
  story.formula("angle = position · ω_i,   float32: round(position · round(ω_i))");
  std::vector<std::string> rows;
  std::vector<CellTerms> angles, errors;
  double largest = 0;
  for (const std::int64_t one : pairs) {
    rows.push_back(fmt::format("pair{}", one));
    const double frequency = frequency_at(form, one);
    const NarrowAngle angle = narrow_angle(frequency, position);
    const CellFactor at = {"position", static_cast<double>(position)};
    angles.push_back({"position · ω", {{at, {fmt::format("ω{}", one), frequency}}}});
    angles.push_back({"as float32 code computes it", {{{"round(position · round(ω))", angle.narrow}}}});
    const double from_frequency = angle.rounded_frequency - angle.exact;
    const double from_product = angle.narrow - angle.rounded_frequency;
    errors.push_back({"position · round(ω) − position · ω",
                      {{{"position · round(ω)", angle.rounded_frequency}}, {{"−position · ω", -angle.exact}}}});
    errors.push_back({"round(position · round(ω)) − position · round(ω)",
                      {{{"rounded", angle.narrow}}, {{"−position · round(ω)", -angle.rounded_frequency}}}});
    errors.push_back(
        {"the sum of both", {{{"from the frequency", from_frequency}}, {{"from the product", from_product}}}});
    largest = std::max(largest, std::fabs(from_frequency + from_product));
  }
  StoryMatrix shown = computed({"A", "A: angles in radians", rows, {"exact", "float32"}}, std::move(angles));
  shown.digits = 4;
  story.show(shown);
  StoryMatrix wrongs = computed(
      {"E", "E: error of the angle in radians, by its cause", rows, {"from-frequency", "from-product", "total"}},
      std::move(errors));
  wrongs.digits = 4;
  story.show(wrongs);
  story.show({fact("largest error of these angles", largest, 4)});

  story.step("score");
  story.show(scores_of_one_pair(scheme, pair, offset, content.integers("starts")));

  story.step("bfloat16");
  const std::int64_t trained = content.integer("trained");
  story.say("trained", std::to_string(trained));
  story.show(bfloat16_positions(content.integers("small_positions")));
  story.show({count(fmt::format("different positions among 0 to {}", trained - 1), distinct_in_bfloat16(trained))});

  story.step("remedy");
  story.formula("angle mod 2π to 128 bits, then sine and cosine, then one rounding");
  story.show(
      {residual("largest error of a row, angles as in Hugging Face's float32 code", float32_error(scheme, position)),
       residual("largest error of a row, exact angles rounded once to float32",
                error_of_one_rounding(form, position))});
  return story.finish();
}

}  // namespace posenc::lessons
