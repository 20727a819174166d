#include <fmt/format.h>

#include <numbers>

#include "lessons/quantities.h"
#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"

namespace posenc::lessons {
namespace {

struct NamedScaling {
  std::string name;
  Rotation form;
};

std::vector<NamedScaling> scalings_of(const Rope& plain, double factor, std::int64_t trained) {
  const auto with = [&](const RopeScaling& scaling) {
    Rope rope = plain;
    rope.scaling = scaling;
    return prepare(rope);
  };
  return {{"linear", with(LinearScaling{.factor = factor})},
          {"ntk", with(NtkScaling{.factor = factor})},
          {"yarn", with(YarnScaling{.factor = factor, .original_length = trained})},
          {"llama3", with(Llama3Scaling{.factor = factor, .original_length = trained})}};
}

CellFactor frequency_factor(std::string_view name, const Rotation& form, std::int64_t pair) {
  return {fmt::format("ω{} {}", pair, name), frequency_at(form, pair)};
}

}  // namespace

Story tell_context_extension(const StoryContent& content, const StoryOptions& options) {
  StoryBuilder story(content, options);
  const Rope plain{.dims = content.integer("dims"), .base = content.number("base")};
  const Rotation before = prepare(plain);
  const std::int64_t trained = content.integer("trained");
  const double factor = content.number("factor");
  const std::int64_t last = static_cast<std::int64_t>(factor) * trained - 1;
  const std::vector<NamedScaling> scalings = scalings_of(plain, factor, trained);
  const std::vector<std::int64_t> pairs = content.integers("pairs");
  std::vector<std::string> rows, methods;
  for (const std::int64_t pair : pairs) rows.push_back(fmt::format("pair{}", pair));
  for (const NamedScaling& scaling : scalings) methods.push_back(scaling.name);
  story.say("dims", std::to_string(plain.dims));
  story.say("trained", std::to_string(trained));
  story.say("factor", fmt::format("{:g}", factor));
  story.say("last", std::to_string(last));

  story.step("problem");
  std::vector<CellTerms> waves;
  std::int64_t beyond = 0;
  for (const std::int64_t pair : pairs) {
    const CellFactor frequency = frequency_factor("before", before, pair);
    waves.push_back({"2π / ω", {{{"2π", 2 * std::numbers::pi}}}, "", frequency});
    waves.push_back(
        {"(trained length − 1) · ω", {{{"trained length − 1", static_cast<double>(trained - 1)}, frequency}}});
    waves.push_back({"last position · ω", {{{"last position", static_cast<double>(last)}, frequency}}});
  }
  for (std::int64_t pair = 0; pair < pairs_of(before); ++pair) {
    if (2 * std::numbers::pi / frequency_at(before, pair) > static_cast<double>(trained)) ++beyond;
  }
  StoryMatrix table = computed({"W",
                                "W: wavelength in positions, largest angles in radians",
                                rows,
                                {"wavelength", "angle-trained", "angle-extended"}},
                               std::move(waves));
  table.digits = 2;
  story.show(table);
  story.show({count("pairs", pairs_of(before)), count("pairs with a wavelength above the trained length", beyond)});

  story.step("slowdown");
  std::vector<CellTerms> slowdowns, angles, steps, magnitudes;
  for (const std::int64_t pair : pairs) {
    for (const NamedScaling& scaling : scalings) {
      const CellFactor now = frequency_factor(scaling.name, scaling.form, pair);
      slowdowns.push_back({"ω before / ω after", {{frequency_factor("before", before, pair)}}, "", now});
      angles.push_back({"last position · ω after / ((trained length − 1) · ω before)",
                        {{{"last position", static_cast<double>(last)}, now}},
                        "",
                        CellFactor{fmt::format("(trained length − 1) · ω{} before", pair),
                                   static_cast<double>(trained - 1) * frequency_at(before, pair)}});
    }
  }
  story.show(computed({"D", "D: divisor of each frequency", rows, methods}, std::move(slowdowns)));

  story.step("angles");
  story.show(computed({"E", "E: largest angle relative to training", rows, methods}, std::move(angles)));

  story.step("resolution");
  for (const NamedScaling& scaling : scalings) {
    steps.push_back({"ω0 after", {{frequency_factor(scaling.name, scaling.form, 0)}}});
    magnitudes.push_back({"factor of cosines and sines", {{{"magnitude", scaling.form.magnitude}}}});
    magnitudes.push_back(
        {"magnitude²", {{{"magnitude", scaling.form.magnitude}, {"magnitude", scaling.form.magnitude}}}});
  }
  story.show(
      computed({"F", "F: radians between adjacent positions in pair 0", methods, {"angle"}}, std::move(steps)));

  story.step("magnitude");
  story.show(computed({"G", "G: magnitude, and its effect on scores", methods, {"magnitude", "scores"}},
                      std::move(magnitudes)));
  return story.finish();
}

}  // namespace posenc::lessons
