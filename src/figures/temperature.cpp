// The factor on queries against their position.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "figures/axes.h"
#include "figures/kinds.h"
#include "figures/position_table.h"
#include "posenc/error.h"

namespace posenc::figures {
namespace {

// The rule, and a model that is known for it.
std::string named(TemperatureRule rule) {
  constexpr std::array<std::string_view, 3> kModels = {"Llama 4", "Inkling", "SSMax"};
  return fmt::format("{} ({})", choice_name(rule), kModels[static_cast<std::size_t>(rule)]);
}

}  // namespace

Figure temperature_figure(const Request& request) {
  const Range range = request.zoom.value_or(Range{0, std::int64_t{1} << 20});
  if (range.count() < 2) raise("query-factor: zoom needs at least two positions");
  Panel panel;
  double least = 1, most = 1;
  int style = 0;
  for (const PlottedScheme& one : request.schemes) {
    const auto* const scheme = std::get_if<QueryTemperature>(&one.scheme);
    if (scheme == nullptr)
      raise(fmt::format("query-factor: works with temperature, not with {}", name_of(one.scheme)));
    const Temperature factor = *prepare(*scheme).temperature;
    Series series{.name = named(scheme->rule), .style = style++};
    // Evenly spaced on a logarithmic axis, each position once.
    const double ratio = std::log(static_cast<double>(range.to) / static_cast<double>(range.from + 1));
    std::int64_t last = -1;
    for (int i = 0; i < request.points; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(request.points - 1);
      const auto place = std::llround(static_cast<double>(range.from + 1) * std::exp(share * ratio)) - 1;
      const std::int64_t position = std::clamp<std::int64_t>(place, range.from, range.to - 1);
      if (position == last) continue;
      last = position;
      series.x.push_back(static_cast<double>(position + 1));
      series.y.push_back(factor_at(factor, position));
      least = std::min(least, series.y.back());
      most = std::max(most, series.y.back());
    }
    panel.series.push_back(std::move(series));
  }
  panel.x = {.label = "position + 1",
             .least = static_cast<double>(range.from + 1),
             .most = static_cast<double>(range.to),
             .scale = AxisScale::kLog};
  panel.y.label = "factor on the query";
  fit(panel.y, least, most);
  panel.rules.push_back({.at = 1, .text = "unchanged"});
  Figure figure;
  figure.kind = "query-factor";
  figure.title = "Queries are scaled by the logarithm of their position";
  figure.subtitle = request.schemes.size() == 1 ? described(request.schemes.front().scheme)
                                                : fmt::format("{} rules", request.schemes.size());
  figure.rows = {{{std::move(panel)}}};
  return figure;
}

}  // namespace posenc::figures
