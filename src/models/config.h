#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/json.h"

namespace posenc::models {

/// A JSON object of a config, and how messages name its place: "" for the outermost, else "rope_scaling: ".
struct Config {
  const Json* object = nullptr;
  std::string place = {};
  const Json* defaults = nullptr;               ///< of its class, for keys that the file lacks (classes.h)
  std::vector<std::string>* assumed = nullptr;  ///< receives the defaults that were used
  std::vector<std::string>* read = nullptr;     ///< receives the keys that were asked for
};

/// Notes a text in a list unless it is already there.
void note(std::vector<std::string>& list, std::string text);

/// The value of a key, of the family's own name for it, or of "outer.inner"; nullptr if it is missing or null. A key
/// that is null in the file has no default: transformers treats null as a value too.
const Json* find(const Config& config, std::string_view key);
/// Whether the file itself has the key with a value.
bool is_given(const Config& config, std::string_view key);
/// The first of these keys that the file gives, else the first that has a default, else "".
std::string_view first_of(const Config& config, std::initializer_list<std::string_view> keys);

/// Throws: Error "PLACEkey must be RULE but is VALUE".
[[noreturn]] void refuse(const Config& config, std::string_view key, std::string_view rule);

/// Nothing if the key is missing. Throws: Error for a value of another type or out of range.
std::optional<double> positive(const Config& config, std::string_view key);
std::optional<double> finite(const Config& config, std::string_view key);
/// A fraction: above 0, at most 1.
std::optional<double> share(const Config& config, std::string_view key);
/// From `least` up to 2^53; 8.0 counts as 8.
std::optional<std::int64_t> integer(const Config& config, std::string_view key, std::int64_t least = 1);
std::optional<std::string> text(const Config& config, std::string_view key);
std::optional<bool> flag(const Config& config, std::string_view key);
std::optional<std::vector<double>> numbers(const Config& config, std::string_view key);
std::optional<std::vector<std::string>> texts(const Config& config, std::string_view key);
/// A nested object. Throws: Error for anything that is neither an object nor null.
std::optional<Config> nested(const Config& config, std::string_view key);

/// "key" (present and not false), "key=value", "!key", "!key=value", separated by spaces; "" always holds.
bool holds(const Config& config, std::string_view conditions);

}  // namespace posenc::models
