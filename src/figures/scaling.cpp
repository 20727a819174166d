// How each method of RoPE context extension rescales the frequency of each pair.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "figures/axes.h"
#include "figures/kinds.h"
#include "figures/position_table.h"
#include "posenc/error.h"

namespace posenc::figures {
namespace {

constexpr std::int64_t kUsualTrained = 4096;

struct Stretched {
  std::string name;
  Rope rope;
};

std::vector<double> radians_of_pairs(const Rope& rope, std::int64_t length) {
  std::vector<double> radians;
  for (const Frequency& frequency : prepare(rope, {.length = length}).frequencies) {
    radians.push_back(radians_of(frequency));
  }
  return radians;
}

std::int64_t original_length_of(const Rope& rope) {
  const auto look = [](const auto& scaling) -> std::int64_t {
    if constexpr (requires { scaling.original_length; }) return scaling.original_length;
    return 0;
  };
  return std::visit(look, *rope.scaling);
}

// The common methods, all extending to the same length.
std::vector<Stretched> usual_ways(const Rope& rope, std::int64_t trained, double factor) {
  std::vector<Stretched> ways;
  const auto add = [&](const std::string& name, const RopeScaling& scaling) {
    ways.push_back({name, rope});
    ways.back().rope.scaling = scaling;
  };
  add("linear", LinearScaling{.factor = factor});
  add("ntk", NtkScaling{.factor = factor});
  add("dynamic, factor 2", DynamicScaling{.factor = 2, .original_length = trained});
  add("yarn", YarnScaling{.factor = factor, .original_length = trained});
  add("llama3", Llama3Scaling{.factor = factor, .original_length = trained});
  return ways;
}

std::vector<Stretched> given_ways(const Request& request) {
  std::vector<Stretched> ways;
  for (const PlottedScheme& scheme : request.schemes) {
    const auto* const rope = std::get_if<Rope>(&scheme.scheme);
    if (rope == nullptr) raise(fmt::format("scaling: works with rope, not with {}", name_of(scheme.scheme)));
    if (std::holds_alternative<NoScaling>(*rope->scaling)) continue;
    const auto name = std::visit([](const auto& scaling) { return std::string(scaling.name); }, *rope->scaling);
    ways.push_back({name, *rope});
  }
  const auto is_taken = [&](const Stretched& way) {
    return std::count_if(ways.begin(), ways.end(), [&](const Stretched& other) { return other.name == way.name; }) >
           1;
  };
  const bool has_twins = std::any_of(ways.begin(), ways.end(), is_taken);
  for (std::size_t i = 0; has_twins && i < ways.size(); ++i) ways[i].name += fmt::format(" ({})", i + 1);
  return ways;
}

std::string as_fraction(double ratio) {
  const double inverse = 1 / ratio;
  if (ratio >= 1) return fmt::format("{:g}", ratio);
  return std::fabs(inverse - std::round(inverse)) < 1e-9 ? fmt::format("1/{}", std::llround(inverse))
                                                         : fmt::format("{:.2g}", ratio);
}

Axis pairs_axis(std::size_t pairs) { return {.least = 0, .most = std::max(static_cast<double>(pairs) - 1, 1.0)}; }

// A logarithmic axis of ratios, with ticks at 1/2, 1/4 … and 2, 4 …
void set_ratio_axis(Panel& panel, double least, double most) {
  panel.y.scale = AxisScale::kLog;
  panel.y.least = least * 0.8;
  panel.y.most = most * 1.3;
  const double step = most / least > 100 ? 4 : 2;
  for (double ratio = 1; ratio >= panel.y.least; ratio /= step) panel.y.ticks.push_back({ratio, as_fraction(ratio)});
  for (double ratio = step; ratio <= panel.y.most; ratio *= step)
    panel.y.ticks.push_back({ratio, as_fraction(ratio)});
}

Panel wavelength_panel(const std::vector<double>& radians, std::int64_t trained, std::int64_t length,
                       bool shows_length) {
  Panel panel{.title = "Wavelength of each pair before scaling", .x = pairs_axis(radians.size())};
  Series wavelengths{.x = counted(radians.size()), .drawing = Drawing::kDots};
  for (const double one : radians) wavelengths.y.push_back(2 * std::numbers::pi / one);
  const double longest = wavelengths.y.back(), end = static_cast<double>(std::max(trained, length));
  panel.y = {.label = "positions", .least = 3, .most = std::max(longest, end) * 3, .scale = AxisScale::kLog};
  panel.rules.push_back({.at = static_cast<double>(trained),
                         .text = fmt::format("trained length {}", grouped(static_cast<double>(trained)))});
  if (shows_length && length > trained) {
    panel.rules.push_back({.at = static_cast<double>(length),
                           .text = fmt::format("extended to {}", grouped(static_cast<double>(length)))});
  }
  panel.series.push_back(std::move(wavelengths));
  return panel;
}

// Each way's frequencies at a length, divided by those without scaling.
Panel relative_panel(const std::vector<Stretched>& ways, const Rope& plain, const std::vector<double>& radians,
                     std::int64_t length) {
  Panel panel{.title = "Frequency of each pair relative to unscaled RoPE", .x = pairs_axis(radians.size())};
  panel.x.label = "pair, from fast to slow";
  panel.y.label = "relative frequency";
  double least = 1, most = 1;
  int style = 0;
  for (const Stretched& way : ways) {
    const std::vector<double> after = radians_of_pairs(way.rope, length);
    if (after.size() != radians.size() || way.rope.base != plain.base) {
      raise("scaling: all schemes need the same dims and base");
    }
    Series series{.name = way.name, .x = counted(radians.size()), .style = style++};
    for (std::size_t pair = 0; pair < after.size(); ++pair) {
      const double ratio = after[pair] / radians[pair];
      series.y.push_back(ratio > 0 ? ratio : std::nan(""));
      if (ratio > 0) least = std::min(least, ratio);
      most = std::max(most, ratio);
    }
    panel.series.push_back(std::move(series));
  }
  set_ratio_axis(panel, least, most);
  return panel;
}

// All series but the first, divided by the first.
Panel ratios_to_first(const Panel& panel) {
  Panel result{.title = "Frequency of each pair relative to the given scaling", .x = panel.x};
  result.y.label = "relative to the given";
  double least = 1, most = 1;
  const std::vector<double>& own = panel.series.front().y;
  for (std::size_t i = 1; i < panel.series.size(); ++i) {
    Series line = panel.series[i];
    for (std::size_t pair = 0; pair < own.size(); ++pair) {
      line.y[pair] /= own[pair];
      if (!std::isfinite(line.y[pair])) continue;
      least = std::min(least, line.y[pair]);
      most = std::max(most, line.y[pair]);
    }
    result.series.push_back(std::move(line));
  }
  result.rules.push_back({.at = 1, .text = "the given scaling"});
  set_ratio_axis(result, least, most);
  return result;
}

}  // namespace

Figure scaling_figure(const Request& request) {
  std::vector<Stretched> ways = given_ways(request);
  Rope plain = std::get<Rope>(request.schemes.front().scheme);
  plain.scaling = NoScaling{};
  if (plain.sections.size() > 1) raise("rope: figures support positions with one axis only");
  if (!(request.factor >= 1) || request.factor > 1e6) raise("scaling: factor must be from 1 to 1e6");
  std::int64_t trained = request.trained.value_or(kUsualTrained);
  if (!request.trained && !ways.empty()) {
    const std::int64_t original = original_length_of(ways.front().rope);
    trained = original > 0 ? original : trained;
  }
  if (trained < 1 || trained > (std::int64_t{1} << 40)) raise("scaling: trained must be from 1 to 2^40");
  const auto length = static_cast<std::int64_t>(std::llround(static_cast<double>(trained) * request.factor));
  const bool is_usual = ways.empty();
  if (request.compares && ways.size() != 1) raise("scaling: a comparison needs exactly one scheme, with a scaling");
  if (is_usual || request.compares) {
    std::vector<Stretched> usual = usual_ways(plain, trained, request.factor);
    if (request.compares) {
      ways.front().name = fmt::format("given: {}", ways.front().name);
      usual.insert(usual.begin(), ways.front());
    }
    ways = std::move(usual);
  }

  const std::vector<double> radians = radians_of_pairs(plain, trained);
  Panel before = wavelength_panel(radians, trained, length, is_usual || request.compares);
  const std::vector<double>& wavelengths = before.series.front().y;
  const std::size_t first_unfinished =
      std::find_if(wavelengths.begin(), wavelengths.end(),
                   [&](double wavelength) { return wavelength > static_cast<double>(trained); }) -
      wavelengths.begin();
  Panel slowed = relative_panel(ways, plain, radians, request.length > 0 ? request.length : length);
  Panel differences;
  if (request.compares) differences = ratios_to_first(slowed);
  if (first_unfinished < radians.size()) {
    const double from = std::max(static_cast<double>(first_unfinished) - 0.5, 0.0);
    for (Panel* const panel : {&before, &slowed, &differences}) panel->bands.push_back({from, before.x.most, ""});
  }

  Figure figure;
  figure.kind = "scaling";
  figure.title = "RoPE context extension: how each method rescales frequencies";
  figure.subtitle =
      fmt::format("{}; {}", described(plain),
                  is_usual || request.compares || request.length > 0
                      ? fmt::format("from {} positions to {}", grouped(static_cast<double>(trained)),
                                    grouped(static_cast<double>(request.length > 0 ? request.length : length)))
                      : fmt::format("trained on {} positions", grouped(static_cast<double>(trained))));
  if (!before.bands.empty()) {
    figure.note = fmt::format("Shaded: {} of {} pairs have a wavelength above the trained length.",
                              radians.size() - first_unfinished, radians.size());
  }
  figure.rows = {{{std::move(before)}, 1}, {{std::move(slowed)}, 1.5}};
  figure.height = 640;
  if (request.compares) {
    figure.rows.push_back({{std::move(differences)}, 1.5});
    figure.height = 940;
  }
  return figure;
}

}  // namespace posenc::figures
