#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/json.h"

namespace posenc::models {

/// A JSON object of a config, and how messages say where it stands: "" for the outermost, else "rope_scaling: ".
struct Config {
  const Json* object = nullptr;
  std::string place = {};
};

/// The value of a key, or of "outer.inner"; nullptr where it is missing or null, which configs use for the same.
const Json* find(const Config& config, std::string_view key);
/// The first of these keys that has a value, or "".
std::string_view first_of(const Config& config, std::initializer_list<std::string_view> keys);

/// Throws: Error "PLACEkey must be RULE but is VALUE".
[[noreturn]] void refuse(const Config& config, std::string_view key, std::string_view rule);

/// Nothing where the key is missing. Throws: Error for a value of another type or outside the range.
std::optional<double> positive(const Config& config, std::string_view key);
std::optional<double> finite(const Config& config, std::string_view key);
/// A share of a whole: above 0 up to 1.
std::optional<double> share(const Config& config, std::string_view key);
/// From `least` up to 2^53; 8.0 counts as 8.
std::optional<std::int64_t> integer(const Config& config, std::string_view key, std::int64_t least = 1);
std::optional<std::string> text(const Config& config, std::string_view key);
std::optional<bool> flag(const Config& config, std::string_view key);
std::optional<std::vector<double>> numbers(const Config& config, std::string_view key);
/// A nested object. Throws: Error for anything that is neither an object nor null.
std::optional<Config> nested(const Config& config, std::string_view key);

/// "key" (there and not false), "key=value", "!key", "!key=value"; "" always holds.
bool holds(const Config& config, std::string_view condition);

}  // namespace posenc::models
