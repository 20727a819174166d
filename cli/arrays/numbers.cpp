#include "cli/arrays/numbers.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>

#include "cli/system/failure.h"

namespace posenc::cli {
namespace {

constexpr std::array<std::string_view, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

// "131,072", "131_072" and "131'072" without their thousands separators; nothing else is changed.
std::string without_separators(std::string_view text) {
  const std::size_t first = text.find_first_of(",_'");
  if (first == std::string_view::npos || first == 0 || first > 3) return std::string(text);
  const char separator = text[first];
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_place = i >= first && (i - first) % 4 == 0;
    if (is_place != (text[i] == separator)) return std::string(text);
    if (is_place) continue;
    if (text[i] < '0' || text[i] > '9') return std::string(text);
    digits += text[i];
  }
  return (text.size() - first) % 4 == 0 ? digits : std::string(text);
}

template <class T> T parse(std::string_view given, std::string_view what, std::string_view kind) {
  const std::string text = without_separators(given);
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error == std::errc::invalid_argument || stop != end) {
    refuse(fmt::format("{}: '{}' is not {}", what, text, kind));
  }
  if (error == std::errc::result_out_of_range) refuse(fmt::format("{}: {} is too large", what, text));
  return value;
}

}  // namespace

std::int64_t integer_from(std::string_view text, std::string_view what) {
  return parse<std::int64_t>(text, what, "an integer");
}

double number_from(std::string_view text, std::string_view what) { return parse<double>(text, what, "a number"); }

std::int64_t bytes_from(std::string_view text, std::string_view what) {
  std::int64_t unit = 1;
  std::string_view digits = text;
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    if (text.ends_with(kUnits[i])) {
      unit = std::int64_t{1} << (10 * (i + 1));
      digits.remove_suffix(kUnits[i].size());
    }
  }
  const auto count = parse<std::int64_t>(digits, what, "a number of bytes, e.g. 1048576 or 64GiB");
  if (count < 0) refuse(fmt::format("{}: {} is negative", what, text));
  if (count > std::numeric_limits<std::int64_t>::max() / unit) refuse(fmt::format("{}: {} is too large", what, text));
  return count * unit;
}

std::string in_bytes(double count) {
  if (count < 1024) return fmt::format("{:.0f} bytes", count);
  std::size_t unit = 0;
  count /= 1024;
  while (count >= 1024 && unit + 1 < kUnits.size()) {
    count /= 1024;
    ++unit;
  }
  std::string digits = fmt::format("{:.1f}", count);
  if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
  return fmt::format("{} {}", digits, kUnits[unit]);
}

}  // namespace posenc::cli
