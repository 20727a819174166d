#include "posenc/schemes/shift.h"

#include "schemes/check.h"

namespace posenc {
namespace {

// SplitMix64 (Steele, Lea, Flood, 2014): the same start on every machine, which std's distributions do not promise.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15;
  std::uint64_t mixed = state;
  mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
  return mixed ^ mixed >> 31;
}

}  // namespace

Addition prepare(const Shift& scheme, const Situation&) {
  schemes::check_between(Shift::name, "width", scheme.width, 1, schemes::kWidthLimit);
  schemes::check_finite(Shift::name, "step", scheme.step);
  const auto width = static_cast<std::size_t>(scheme.width);
  Lines lines{std::vector<double>(width), std::vector<double>(width, scheme.step)};
  auto state = static_cast<std::uint64_t>(scheme.seed);
  for (double& start : lines.start) start = static_cast<double>(next_random(state) >> 11) * 0x1p-52 - 1.0;
  return {scheme.width, std::move(lines)};
}

}  // namespace posenc
