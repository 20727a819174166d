#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace posenc::lessons {

/// An argument of a function: a number, or the name of a scheme.
using FormulaValue = std::variant<double, std::string>;

/// Throws: Error for an unknown name and for arguments that do not fit.
double call_formula_function(std::string_view name, const std::vector<FormulaValue>& arguments);

}  // namespace posenc::lessons
