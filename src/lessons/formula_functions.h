#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace posenc::lessons {

class FormulaNames;

/// What a formula is worth: a number, or text, which as an argument of a function names a scheme.
using FormulaValue = std::variant<double, std::string>;

/// Throws: Error for an unknown name and for arguments that do not fit.
double call_formula_function(std::string_view name, const std::vector<FormulaValue>& arguments,
                             const FormulaNames& names);

}  // namespace posenc::lessons
