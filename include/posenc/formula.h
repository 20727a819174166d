#pragma once

#include <span>
#include <string>
#include <string_view>

namespace posenc {

/// Replaces every {{formula | form}} in a template by its value.
///
///   "{{dot(8, 6) | 3}}"     three decimals: 3.784
///   "{{1 / 4096 | g2}}"     two significant digits: 0.00024
///   "{{512 * 768}}"         an integer: 393216; any other value needs a form
///
/// A formula consists of numbers, + − * /, brackets, pi and the functions below; 'names' in quotes are schemes of
/// content/schemes.json. Content has no other way to show a result.
/// Throws: Error "formula: WHAT" for a template that does not evaluate.
std::string fill_template(std::string_view text);

/// The value of a formula, without braces and form. Throws: as above.
double evaluate_formula(std::string_view formula);

/// What a formula may call.
struct FormulaFunction {
  std::string_view name;
  std::string_view arguments;  // "width, position, column[, base]"
  std::string_view help;
};
std::span<const FormulaFunction> formula_functions();

}  // namespace posenc
