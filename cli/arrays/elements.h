#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "posenc/tensor.h"

namespace posenc::cli {

/// f32, f64, f16 or bf16. Throws: Failure "FLAG: …" for anything else.
DataType float_type_from(std::string_view text, std::string_view flag = "--dtype");

/// "float32", "bfloat16": for messages.
std::string_view spoken_name(DataType type);

/// Element `index` of an array of this type.
double element_at(const std::byte* data, DataType type, std::int64_t index);

/// Appends the element with the fewest digits that read back to it. `not_finite` is written for NaN and infinities;
/// empty if the format can represent them.
void append_element(std::string& text, const std::byte* data, DataType type, std::int64_t index,
                    std::string_view not_finite);

}  // namespace posenc::cli
