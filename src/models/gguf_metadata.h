#pragma once

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "models/architectures.h"
#include "posenc/error.h"
#include "posenc/gguf.h"
#include "posenc/model.h"

namespace posenc::models {

/// The metadata of one architecture.
struct GgufMetadata {
  const GgufHead& head;
  std::string architecture;

  std::string full(std::string_view key) const { return fmt::format("{}.{}", architecture, key); }
  const GgufValue* find(std::string_view key) const { return head.find(full(key)); }
  [[noreturn]] void refuse(std::string_view key, std::string_view rule, const std::string& value) const {
    raise(fmt::format("{} must be {} but is {}", full(key), rule, value));
  }

  std::optional<std::int64_t> integer(std::string_view key) const {
    const GgufValue* const value = find(key);
    if (value == nullptr || value->as<GgufArray>() != nullptr) return std::nullopt;
    const auto whole = gguf_integer(*value);
    if (!whole || *whole < 0 || *whole > kPositionLimit) {
      refuse(key, "an integer from 0 to 2^53", whole ? std::to_string(*whole) : "another value");
    }
    return whole;
  }
  // llama.cpp treats a factor of 0 as none
  std::optional<double> positive_or_0(std::string_view key) const {
    const GgufValue* const value = find(key);
    return value != nullptr && gguf_number(*value) == 0.0 ? std::optional(0.0) : positive(key);
  }
  std::optional<double> positive(std::string_view key) const {
    const GgufValue* const value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto number = gguf_number(*value);
    if (!number || !std::isfinite(*number) || !(*number > 0)) {
      refuse(key, "a number above 0", number ? fmt::format("{}", *number) : "another value");
    }
    return number;
  }
  // Nothing if the key is missing or not a list.
  std::optional<std::vector<double>> list(std::string_view key) const {
    const GgufValue* const value = find(key);
    const auto* const array = value == nullptr ? nullptr : value->as<GgufArray>();
    if (array == nullptr) return std::nullopt;
    std::vector<double> numbers;
    for (const GgufValue& one : gguf_elements(*array)) {
      const auto* const flag = one.as<bool>();
      const auto number = flag != nullptr ? std::optional(*flag ? 1.0 : 0.0) : gguf_number(one);
      if (!number) refuse(key, "a list of numbers", "another value");
      numbers.push_back(*number);
    }
    return numbers;
  }
  bool is_false(std::string_view key) const {
    const GgufValue* const value = find(key);
    const auto* const flag = value == nullptr ? nullptr : value->as<bool>();
    return flag != nullptr && !*flag;
  }
  std::string text(std::string_view key) const {
    const GgufValue* const value = find(key);
    if (value == nullptr) return "";
    const auto* const words = value->as<std::string_view>();
    if (words == nullptr) refuse(key, "a text", "another value");
    return std::string(*words);
  }
};

/// The rotation that the metadata describe, without its scaling; what had to be assumed is added to the model.
Rope gguf_rope(const GgufMetadata& from, const Architecture& facts, Model& model);
/// Adds the scaling: from the metadata, or from the divisors that the file has as tensors.
void read_gguf_scaling(const GgufMetadata& from, const Architecture& facts, std::span<const std::byte> file,
                       Rope& rope, Model& model);

}  // namespace posenc::models
