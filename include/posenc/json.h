#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace posenc {

/// A JSON value. Reading has limits (JsonLimits), members keep their order, and integers stay integers.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object>;

  Json() : value_(nullptr) {}
  Json(std::nullptr_t) : value_(nullptr) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(static_cast<std::int64_t>(value)) {}
  Json(std::int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  const Value& value() const { return value_; }
  template <class T> const T* as() const { return std::get_if<T>(&value_); }
  /// Moves the value out.
  Value take() && { return std::move(value_); }
  /// The member of this name, or nullptr if this is not an object or has no such member.
  const Json* find(std::string_view key) const;
  /// The same if it is a T: find<std::string>("name").
  template <class T> const T* find(std::string_view key) const {
    const Json* const found = find(key);
    return found == nullptr ? nullptr : found->as<T>();
  }
  bool operator==(const Json&) const = default;

 private:
  Value value_;
};

struct JsonLimits {
  int depth = 64;                    ///< containers within containers; at most 1000
  std::int64_t bytes = 100'000'000;  ///< length of the text; at most 200'000'000
  std::int64_t values = 10'000'000;  ///< numbers, strings, containers … in total; each takes at least 40 bytes
  std::int64_t text = 100'000'000;   ///< length of one string or key, with escapes as written
  bool python_numbers = false;       ///< accept bare NaN, Infinity and -Infinity, as Python writes them
  bool large_integers = false;       ///< accept integers past 64 bits, as JavaScript writes 1e20; they become doubles
};

/// For the config.json of a model: untrusted, usually a few kilobytes, written by Python.
inline constexpr JsonLimits kConfigJsonLimits = {.bytes = 16'000'000, .values = 1'000'000, .python_numbers = true};

/// Throws: Error "line L, column C: WHAT" for malformed text, repeated keys, invalid UTF-8, too deep or too long.
/// An integer past 64 bits is rejected, unless the limits accept it; so is 1e400.
Json parse_json(std::string_view text, const JsonLimits& limits = {});

/// Compact with indent 0, otherwise indented. Doubles are written with the fewest digits that read back as the same
/// value; NaN and infinities become null.
std::string dump_json(const Json& json, int indent = 0);

}  // namespace posenc
