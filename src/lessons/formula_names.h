#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lessons/formula_functions.h"
#include "lessons/named_schemes.h"

namespace posenc::lessons {

/// What names of a formula mean besides functions and pi: the variables of an exercise, which are numbers or text, and
/// the schemes that were made for it.
class FormulaNames {
 public:
  void set(std::string_view name, FormulaValue value);
  void set_scheme(std::string_view name, NamedScheme scheme) { schemes_.emplace_back(name, std::move(scheme)); }

  /// Null where there is none.
  const FormulaValue* find(std::string_view name) const;
  /// Of the exercise, or of content/schemes.json. Throws: Error for a name that neither has.
  NamedScheme scheme(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, FormulaValue>> values_;
  std::vector<std::pair<std::string, NamedScheme>> schemes_;
};

/// As fill_template and evaluate_formula, with names. Beyond what is said there: `a < b ? x : y` with the six comparisons,
/// where x and y may be 'text'; sum(i, from, to, formula of i); and the form of a number may be the name of a number of
/// decimals, or stand in brackets, which are shown around a negative number.
std::string fill_template(std::string_view text, const FormulaNames& names);
double evaluate_formula(std::string_view formula, const FormulaNames& names);

}  // namespace posenc::lessons
