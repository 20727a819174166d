#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/command.h"

namespace posenc::cli {

/// f32, f64, f16, bf16.
const std::vector<std::string_view>& float_type_names();

/// --numerics: which angles.
void add_numerics_flag(Command verb, std::string& numerics);

/// --dtype of an input; `what` names the input.
void add_dtype_flag(Command verb, std::string& dtype, std::string_view what);

}  // namespace posenc::cli
