#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lessons/formula_functions.h"
#include "lessons/named_schemes.h"

namespace posenc::lessons {

/// The names that a formula may use besides functions and pi: the variables of an exercise, which are numbers or
/// text, and the schemes defined for it.
class FormulaNames {
 public:
  void set(std::string_view name, FormulaValue value);
  void set_scheme(std::string_view name, NamedScheme scheme) { schemes_.emplace_back(name, std::move(scheme)); }

  /// Null if there is none.
  const FormulaValue* find(std::string_view name) const;
  /// A scheme of the exercise or of content/schemes.json. Throws: Error for an unknown name.
  NamedScheme scheme(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, FormulaValue>> values_;
  std::vector<std::pair<std::string, NamedScheme>> schemes_;
};

/// fill_template and evaluate_formula (posenc/formula.h) with names, and more syntax: `a < b ? x : y` with the six
/// comparisons, where x and y may be 'text'; sum(i, from, to, formula of i). The form of a number may be the name of
/// a variable that holds the number of decimals, and may be in brackets: then a negative number is shown in brackets.
std::string fill_template(std::string_view text, const FormulaNames& names);
double evaluate_formula(std::string_view formula, const FormulaNames& names);

}  // namespace posenc::lessons
