#include "cli/pages/tour_sections.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "posenc/scheme.h"

namespace posenc::cli {
namespace {

constexpr std::int64_t kFarPosition = 1'000'003;
constexpr std::int64_t kWidth = 512;

std::vector<float> row_at(std::int64_t position, Numerics numerics) {
  std::vector<float> row(kWidth);
  PrepareOptions options;
  options.numerics = numerics;
  tabulate(view(row.data(), {1, kWidth}), {.first = position}, prepare(Sinusoidal{.width = kWidth}, options));
  return row;
}

// The row computed independently: by the C library in its widest type, rounded once.
std::vector<float> witness_at(std::int64_t position) {
  std::vector<float> row;
  for (std::int64_t pair = 0; pair < kWidth / 2; ++pair) {
    const long double exponent = -2.0L * static_cast<long double>(pair) / static_cast<long double>(kWidth);
    const long double angle = static_cast<long double>(position) * std::pow(10000.0L, exponent);
    row.push_back(static_cast<float>(std::sin(angle)));
    row.push_back(static_cast<float>(std::cos(angle)));
  }
  return row;
}

struct Agreement {
  std::size_t equal = 0;
  std::size_t worst = 0;
  double largest_error = 0;
};

Agreement compare(const std::vector<float>& values, const std::vector<float>& truth) {
  Agreement result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == truth[i]) ++result.equal;
    const double error = std::fabs(static_cast<double>(values[i]) - static_cast<double>(truth[i]));
    if (error <= result.largest_error) continue;
    result.largest_error = error;
    result.worst = i;
  }
  return result;
}

}  // namespace

ReportSection exactness_section() {
  const std::vector<float> truth = witness_at(kFarPosition);
  const std::vector<float> ours = row_at(kFarPosition, Numerics::kExact);
  const std::vector<float> usual = row_at(kFarPosition, Numerics::kHfF32);
  const Agreement our = compare(ours, truth);
  const Agreement their = compare(usual, truth);
  const std::size_t column = their.worst;
  const auto measured = [&](std::string who, const std::vector<float>& values, const Agreement& agreement) {
    return std::vector<std::string>{std::move(who), fmt::format("{:.9f}", values[column]),
                                    fmt::format("{} of {}", agreement.equal, truth.size()),
                                    fmt::format("{:.2g}", agreement.largest_error)};
  };
  ReportSection section;
  section.heading = "Exact angles at large positions";
  section.text = fmt::format("Position 1,000,003 with {} features, computed now in three ways:", kWidth);
  section.prose = {
      "An angle is position times frequency. In float32 it has 24 significant bits, and at position one million few of "
      "them are left after the binary point: the sine of the angle is wrong in the second decimal.",
      "posenc keeps frequencies as 256-bit fractions of a turn and multiplies with integers. Whole turns are dropped "
      "without rounding, and only the sine is rounded, once."};
  section.table = {{"", fmt::format("column {}", column), "correctly rounded", "largest error"},
                   {measured("posenc", ours, our),
                    measured("float32 angle, as is usual", usual, their),
                    {"C library, long double", fmt::format("{:.9f}", truth[column]), "reference", "-"}}};
  return section;
}

}  // namespace posenc::cli
