#include "figures/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace posenc::figures {

void fit(Axis& axis, double least, double most, double margin) {
  const double room = most > least ? (most - least) * margin : std::max(std::fabs(most), 1.0) * 0.5;
  axis.least = least - room;
  axis.most = most + room;
}

std::vector<double> counted(std::int64_t count, double first) {
  std::vector<double> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::string grouped(double value) {
  if (std::fabs(value) < 1e-12) return "0";
  std::string digits = fmt::format("{:.6g}", std::fabs(value));
  if (std::fabs(value) >= 1000 && value == std::floor(value) && std::fabs(value) < 1e16) {
    digits = fmt::format("{:.0f}", std::fabs(value));
    for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) {
      digits.insert(at, ",");
    }
  }
  return value < 0 ? "−" + digits : digits;
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "∞";
  if (std::fabs(value) >= 1000) return grouped(std::round(value));
  return fmt::format("{:.3g}", value);
}

}  // namespace posenc::figures
