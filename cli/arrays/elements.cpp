#include "cli/arrays/elements.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <iterator>

#include "cli/system/failure.h"
#include "posenc/half.h"

namespace posenc::cli {
namespace {

template <class T> T load(const std::byte* data, std::int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

float as_float(const std::byte* data, DataType type, std::int64_t index) {
  if (type == DataType::kF16) return static_cast<float>(to_double(load<Half>(data, index)));
  if (type == DataType::kBF16) return static_cast<float>(to_double(load<BFloat16>(data, index)));
  return load<float>(data, index);
}

}  // namespace

DataType float_type_from(std::string_view text, std::string_view flag) {
  for (const DataType type : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16}) {
    if (name_of(type) == text) return type;
  }
  refuse(fmt::format("{}: '{}' is not one of f32, f64, f16, bf16", flag, text));
}

std::string_view spoken_name(DataType type) {
  constexpr std::string_view kNames[] = {"float32", "float64", "float16", "bfloat16", "int64", "bool"};
  return kNames[static_cast<std::size_t>(type)];
}

double element_at(const std::byte* data, DataType type, std::int64_t index) {
  if (type == DataType::kF64) return load<double>(data, index);
  return static_cast<double>(as_float(data, type, index));
}

void append_element(std::string& text, const std::byte* data, DataType type, std::int64_t index,
                    std::string_view not_finite) {
  if (!not_finite.empty() && !std::isfinite(element_at(data, type, index))) {
    text += not_finite;
  } else if (type == DataType::kF64) {
    fmt::format_to(std::back_inserter(text), "{}", load<double>(data, index));
  } else {
    fmt::format_to(std::back_inserter(text), "{}", as_float(data, type, index));
  }
}

}  // namespace posenc::cli
