#include "formats/json_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "formats/excerpt.h"

namespace posenc {
namespace {

// Values are destroyed recursively, so no depth limit may exceed this.
constexpr int kDeepest = 1000;

/// The approximate power of ten of a number's first nonzero digit: distinguishes 1e400 from 1e-400.
[[maybe_unused]] std::int64_t decimal_exponent(std::string_view number) {
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  std::int64_t exponent = 0;
  if (e < number.size()) {
    std::string_view digits = number.substr(e + 1);
    if (digits.front() == '+') digits.remove_prefix(1);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    const std::int64_t huge = std::int64_t{1} << 40;
    if (read.ec != std::errc{}) exponent = digits.front() == '-' ? -huge : huge;
    exponent = std::clamp(exponent, -huge, huge);
  }
  const std::string_view mantissa = number.substr(0, e);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t first = std::min(mantissa.find_first_of("123456789"), mantissa.size());
  return exponent + static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
}

/// The nearest double, independent of the locale; infinite if the number is too large, 0 if it is too small.
double to_double(std::string_view number) {
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
  double value = 0.0;
  if (std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc{}) return value;
  if (decimal_exponent(number) > 0) return std::numeric_limits<double>::infinity();
  return number.front() == '-' ? -0.0 : 0.0;
#else
  // The libc++ for WebAssembly has no from_chars for doubles; its C library has only the locale "C".
  return std::strtod(std::string(number).c_str(), nullptr);
#endif
}

/// Two members of an object with the same key.
struct Repetition {
  std::size_t first = 0;
  std::size_t second = 0;
};

/// The earliest repetition. Sorts, because an object may have a million members.
std::optional<Repetition> find_repetition(const Json::Object& object) {
  if (object.size() < 2) return std::nullopt;
  std::vector<std::size_t> order(object.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int compared = object[a].first.compare(object[b].first);
    return compared != 0 ? compared < 0 : a < b;
  });
  std::optional<Repetition> earliest;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (object[order[i - 1]].first != object[order[i]].first) continue;
    if (!earliest || order[i] < earliest->second) earliest = Repetition{order[i - 1], order[i]};
  }
  return earliest;
}

}  // namespace

JsonPlace place_of(std::string_view text, std::size_t offset) {
  JsonPlace place;
  for (const char c : text.substr(0, offset)) {
    const bool continues_character = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (c == '\n') {
      ++place.line;
      place.column = 1;
    } else if (!continues_character) {
      ++place.column;
    }
  }
  return place;
}

JsonBuilder::JsonBuilder(std::string_view text, const JsonLimits& limits, JsonMemberVisit visit)
    : text_(text), limits_(limits), visit_(std::move(visit)) {
  limits_.depth = std::min(limits_.depth, kDeepest);
}

bool JsonBuilder::refuse(std::size_t offset, std::string what) {
  if (!complaint_) complaint_ = JsonComplaint{offset, std::move(what)};
  return false;
}

bool JsonBuilder::count(std::size_t offset) {
  if (++values_ <= limits_.values) return true;
  return refuse(offset, fmt::format("more than {} values", limits_.values));
}

bool JsonBuilder::open(bool is_object, std::size_t offset) {
  if (static_cast<std::int64_t>(frames_.size()) >= limits_.depth) {
    return refuse(offset, fmt::format("nested deeper than {}", limits_.depth));
  }
  if (visit_ && frames_.empty() && !is_object) return refuse(offset, "expected an object, got an array");
  if (!count(offset)) return false;
  frames_.emplace_back().is_object = is_object;
  return true;
}

bool JsonBuilder::attach(Json value) {
  if (frames_.empty()) {
    root_ = std::move(value);
  } else if (Frame& frame = frames_.back(); visit_ && frames_.size() == 1) {
    values_ = 0;
    std::string wrong = visit_(std::move(frame.key), std::move(value));
    if (!wrong.empty()) return refuse(begin_of_string(frame.key_ends.back()), std::move(wrong));
    frame.key_ends.clear();
  } else if (frame.is_object) {
    frame.object.emplace_back(std::move(frame.key), std::move(value));
  } else {
    frame.array.push_back(std::move(value));
  }
  return true;
}

bool JsonBuilder::add(Json value, std::size_t offset) {
  if (visit_ && frames_.empty()) return refuse(offset, "expected an object, got another value");
  return count(offset) && attach(std::move(value));
}

bool JsonBuilder::add_string(std::string value, std::size_t end) {
  return check_surrogates(value, end) && add(std::move(value), end);
}

bool JsonBuilder::add_number(std::string_view number, std::size_t begin) {
  const bool is_word = number.back() < '0' || number.back() > '9';
  if (is_word) {
    if (number != "NaN" && number != "Infinity" && number != "-Infinity") {
      return refuse(begin, fmt::format("{} is not a value", number));
    }
    if (!limits_.python_numbers) return refuse(begin, fmt::format("{} is not a JSON number", number));
    const double infinity = std::numeric_limits<double>::infinity();
    if (number == "NaN") return add(std::numeric_limits<double>::quiet_NaN(), begin);
    return add(number.front() == '-' ? -infinity : infinity, begin);
  }
  if (number.find_first_of(".eE") == std::string_view::npos) {
    std::int64_t value = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    if (read.ec == std::errc{}) return add(value, begin);
    if (!limits_.large_integers) {
      return refuse(begin, fmt::format("integer {} does not fit in 64 bits", excerpt(number)));
    }
  }
  const double value = to_double(number);
  if (std::isfinite(value)) return add(value, begin);
  return refuse(begin, fmt::format("number {} is too large", excerpt(number)));
}

bool JsonBuilder::key(std::string key, std::size_t end) {
  Frame& frame = frames_.back();
  frame.key = std::move(key);
  frame.key_ends.push_back(end);
  return check_surrogates(frame.key, end);
}

bool JsonBuilder::close_array() {
  Json::Array array = std::move(frames_.back().array);
  frames_.pop_back();
  return attach(std::move(array));
}

bool JsonBuilder::close_object() {
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  if (const auto repetition = find_repetition(frame.object)) {
    const JsonPlace first = place_of(text_, frame.key_ends[repetition->first]);
    const std::string key = dump_json(excerpt(frame.object[repetition->second].first));
    return refuse(begin_of_string(frame.key_ends[repetition->second]),
                  fmt::format("repeated key {} (first on line {})", key, first.line));
  }
  return attach(std::move(frame.object));
}

/// A reader may accept a lone escaped "\udc00" and turn it into three bytes, ED B0 80, that are not UTF-8.
bool JsonBuilder::check_surrogates(std::string_view value, std::size_t end) {
  for (std::size_t i = value.find('\xED'); i != std::string_view::npos; i = value.find('\xED', i + 1)) {
    if (i + 1 < value.size() && static_cast<unsigned char>(value[i + 1]) >= 0xA0) {
      return refuse(begin_of_string(end), "the string holds half of a surrogate pair");
    }
  }
  return true;
}

/// The opening quote that matches a closing one: quotes inside are preceded by a backslash, the opening one never is.
std::size_t JsonBuilder::begin_of_string(std::size_t end) const {
  std::size_t at = end - 1;
  do {
    at = text_.rfind('"', at - 1);
  } while (at > 0 && text_[at - 1] == '\\');
  return at;
}

}  // namespace posenc
