#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "posenc/types.h"

namespace posenc {

/// A tensor type of ggml: blocks of elements that share `bytes`.
struct GgufDtype {
  std::uint32_t number = 0;
  std::string_view name;
  std::int64_t elements = 1;
  std::int64_t bytes = 0;
  std::optional<DataType> type = {};
};

/// nullptr if ggml has none with this number, or no longer has it.
const GgufDtype* find_gguf_dtype(std::uint32_t number);

}  // namespace posenc
