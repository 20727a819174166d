#include "cli/plots/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace posenc::cli {
namespace {

constexpr int kMostTicks = 100;

std::string superscript(int number) {
  static constexpr std::array<std::string_view, 10> kDigits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = number < 0 ? "⁻" : "";
  for (const char digit : fmt::format("{}", std::abs(number))) text += kDigits[digit - '0'];
  return text;
}

std::string power_of_ten(int exponent) {
  if (exponent == 0) return "1";
  if (exponent == 1) return "10";
  return "10" + superscript(exponent);
}

std::vector<Tick> linear_ticks(const Axis& axis, int wanted) {
  const double range = axis.most - axis.least;
  if (!(range > 0) || !std::isfinite(range)) return {};
  const double rough = range / std::max(wanted, 1);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double multiple : {5.0, 2.0, 1.0}) {
    if (power * multiple >= rough) step = power * multiple;
  }
  // far from 0 there may be no doubles that close
  step = std::max(step,
                  8 * std::numeric_limits<double>::epsilon() * std::max(std::fabs(axis.least), std::fabs(axis.most)));
  std::vector<Tick> ticks;
  const double first = std::ceil(axis.least / step - 1e-9);
  for (int n = 0; n <= kMostTicks; ++n) {
    const double at = (first + n) * step;
    if (at > axis.most + step * 1e-9) break;
    ticks.push_back({at, figures::grouped(at)});
  }
  return ticks;
}

std::vector<Tick> log_ticks(const Axis& axis, int wanted) {
  const int first = static_cast<int>(std::ceil(std::log10(axis.least) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(axis.most) + 1e-9));
  const int step = std::max(1, (last - first + wanted) / std::max(wanted, 1));
  std::vector<Tick> ticks;
  for (int exponent = first; exponent <= last; exponent += step) {
    ticks.push_back({std::pow(10.0, exponent), power_of_ten(exponent)});
  }
  return ticks;
}

}  // namespace

std::vector<Tick> ticks_of(const Axis& axis, int wanted) {
  if (!axis.shown) return {};
  if (axis.ticks.empty()) return axis.scale == AxisScale::kLog ? log_ticks(axis, wanted) : linear_ticks(axis, wanted);
  std::vector<Tick> ticks;
  for (const Tick& tick : axis.ticks) {
    if (tick.at >= axis.least && tick.at <= axis.most) ticks.push_back(tick);
  }
  return ticks;
}

double share_of(const Axis& axis, double value) {
  double share = 0;
  if (axis.scale == AxisScale::kLog) {
    share = std::log(value / axis.least) / std::log(axis.most / axis.least);
  } else {
    share = (value - axis.least) / (axis.most - axis.least);
  }
  return axis.reversed ? 1 - share : share;
}

}  // namespace posenc::cli
