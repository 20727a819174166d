#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posenc/error.h"
#include "posenc/forms.h"

namespace posenc {

double logarithm_at(const Temperature& t, std::int64_t position) noexcept {
  const auto tokens = static_cast<double>(position + t.shift);
  const std::int64_t periods = (position + t.shift) / t.length;
  switch (t.rule) {
    case TemperatureRule::kLog:
      return std::max(0.0, std::log(tokens / static_cast<double>(t.length)));
    case TemperatureRule::kTokens:
      return std::log(tokens);
    default:
      return std::log1p(static_cast<double>(periods));
  }
}

double factor_at(const Temperature& t, std::int64_t position, std::int64_t head) noexcept {
  const double scale = t.head_scales.empty() ? t.scale : t.head_scales[head];
  return (t.rule == TemperatureRule::kTokens ? 0 : 1) + scale * logarithm_at(t, position);
}

void check_temperature(std::string_view verb, const Temperature& t) {
  const std::int64_t least = t.rule == TemperatureRule::kTokens ? 1 : 0;
  if (t.length < 1 || t.length > kPositionLimit || t.shift < least || t.shift > kPositionLimit) {
    raise(fmt::format("{}: a temperature needs a length of 1 or more and a shift of {} or more, but has {} and {}",
                      verb, least, t.length, t.shift));
  }
  const auto is_finite = [](double scale) { return std::isfinite(scale); };
  if (is_finite(t.scale) && std::all_of(t.head_scales.begin(), t.head_scales.end(), is_finite)) return;
  raise(fmt::format("{}: a temperature's scale must be a finite number", verb));
}

std::string to_string(const Temperature& t) {
  const std::string scale = t.head_scales.empty() ? fmt::format("{:.6g}", t.scale) : "scale_h";
  switch (t.rule) {
    case TemperatureRule::kLog:
      return fmt::format("1 + {} ln(max(1, (p + {}) / {}))", scale, t.shift, t.length);
    case TemperatureRule::kTokens:
      return fmt::format("{} ln(p + {})", scale, t.shift);
    default:
      return fmt::format("1 + {} ln(1 + floor((p + {}) / {}))", scale, t.shift, t.length);
  }
}

}  // namespace posenc
