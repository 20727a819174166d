#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace posenc::lessons {

class FormulaNames;

/// The value of a formula: a number or text. As an argument of a function, text is the name of a scheme.
using FormulaValue = std::variant<double, std::string>;

/// Throws: Error for an unknown name and for unsuitable arguments.
double call_formula_function(std::string_view name, const std::vector<FormulaValue>& arguments,
                             const FormulaNames& names);

}  // namespace posenc::lessons
