// Evaluates the formulas in texts of content/ and inserts their values: a parser of small expressions.
#include "posenc/formula.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>
#include <variant>
#include <vector>

#include "lessons/formula_names.h"
#include "posenc/error.h"

namespace posenc {
namespace lessons {
namespace {

constexpr int kDeepest = 32;
constexpr double kLargestWhole = 9007199254740992.0;  // 2^53: larger doubles skip integers
constexpr int kMostFormulaDigits = 17;

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool continues_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Reader {
 public:
  Reader(std::string_view text, const FormulaNames& names) : text_(text), names_(names) {}

  FormulaValue whole_formula() {
    FormulaValue result = value();
    skip_spaces();
    if (at_ != text_.size()) fail("end of the formula", at_);
    return result;
  }

 private:
  [[noreturn]] void fail(std::string_view wanted, std::size_t at) const {
    raise(fmt::format("formula: {} expected at '{}'", wanted, text_.substr(at)));
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view wanted) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  void expect(std::string_view wanted) {
    if (!take(wanted)) fail(fmt::format("'{}'", wanted), at_);
  }

  // A number, 'text', or a conditional.
  FormulaValue value() {
    if (++depth_ > kDeepest) raise("formula: brackets too deep");
    FormulaValue result = unnested_value();
    --depth_;
    return result;
  }

  FormulaValue unnested_value() {
    if (take("'")) return quoted();
    if (const std::string* const text = take_text()) return *text;
    const double first = comparison();
    if (!take("?")) return first;
    FormulaValue if_so = value();
    expect(":");
    FormulaValue otherwise = value();
    return first != 0 ? if_so : otherwise;
  }

  std::string quoted() {
    const std::size_t begin = at_;
    at_ = text_.find('\'', begin);
    if (at_ == std::string_view::npos) {
      at_ = begin;
      fail("a closing quote", begin);
    }
    return std::string(text_.substr(begin, at_++ - begin));
  }

  // The value of a name that refers to text.
  const std::string* take_text() {
    const std::size_t begin = at_;
    skip_spaces();
    const FormulaValue* const found = names_.find(name());
    const auto* const text = found != nullptr ? std::get_if<std::string>(found) : nullptr;
    if (text == nullptr) at_ = begin;
    return text;
  }

  double comparison() {
    const double left = sum();
    if (take("<=")) return left <= sum() ? 1 : 0;
    if (take(">=")) return left >= sum() ? 1 : 0;
    if (take("==")) return left == sum() ? 1 : 0;
    if (take("!=")) return left != sum() ? 1 : 0;
    if (take("<")) return left < sum() ? 1 : 0;
    if (take(">")) return left > sum() ? 1 : 0;
    return left;
  }

  double sum() {
    double total = product();
    while (true) {
      if (take("+")) {
        total += product();
      } else if (take("-")) {
        total -= product();
      } else {
        return total;
      }
    }
  }

  double product() {
    double total = factor();
    while (true) {
      if (take("*")) {
        total *= factor();
      } else if (take("/")) {
        total /= factor();
      } else {
        return total;
      }
    }
  }

  double factor() {
    if (++depth_ > kDeepest) raise("formula: brackets too deep");
    const double result = unnested_factor();
    --depth_;
    return result;
  }

  double unnested_factor() {
    if (take("-")) return -factor();
    if (take("(")) {
      const std::size_t begin = at_;
      const FormulaValue inside = value();
      if (!std::holds_alternative<double>(inside)) fail("a number", begin);
      expect(")");
      return std::get<double>(inside);
    }
    skip_spaces();
    if (at_ < text_.size() && begins_name(text_[at_])) return named();
    return number();
  }

  double number() {
    double result = 0;
    const char* const end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(text_.data() + at_, end, result);
    if (error != std::errc()) fail("a number", at_);
    at_ = stop - text_.data();
    return result;
  }

  std::string_view name() {
    const std::size_t begin = at_;
    if (at_ < text_.size() && begins_name(text_[at_])) ++at_;
    while (at_ > begin && at_ < text_.size() && continues_name(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  double named() {
    const std::size_t begin = at_;
    const std::string_view called = name();
    if (!take("(")) {
      const FormulaValue* const found = names_.find(called);
      if (found != nullptr && std::holds_alternative<double>(*found)) return std::get<double>(*found);
      if (called == "pi") return std::numbers::pi;
      fail("a function, a variable or pi", begin);
    }
    if (called == "sum") return sum_of_terms();
    std::vector<FormulaValue> arguments;
    if (!take(")")) {
      do arguments.push_back(value());
      while (take(","));
      expect(")");
    }
    return call_formula_function(called, arguments, names_);
  }

  // sum(i, from, to, formula of i): the formula is parsed again for each i.
  double sum_of_terms() {
    constexpr double kMostTerms = 4096;
    skip_spaces();
    const std::string index(name());
    if (index.empty()) fail("a name", at_);
    expect(",");
    const double from = sum();
    expect(",");
    const double to = sum();
    expect(",");
    if (!(to >= from) || to - from > kMostTerms) raise("formula: sum needs 1 to 4096 terms");
    FormulaNames names = names_;
    double total = 0;
    std::size_t end = at_;
    for (double i = from; i <= to; ++i) {
      names.set(index, i);
      Reader term(text_, names);
      term.at_ = at_;
      term.depth_ = depth_ + 1;
      total += term.sum();
      end = term.at_;
    }
    at_ = end;
    expect(")");
    return total;
  }

  std::string_view text_;
  const FormulaNames& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

int digits_from(std::string_view text, const FormulaNames& names) {
  int digits = -1;
  const FormulaValue* const named = names.find(text);
  if (named != nullptr && std::holds_alternative<double>(*named)) {
    digits = static_cast<int>(std::get<double>(*named));
  } else {
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), digits);
    if (error != std::errc() || stop != text.data() + text.size()) digits = -1;
  }
  if (digits < 0 || digits > kMostFormulaDigits) {
    raise(fmt::format("formula: '{}' is no form: a number of decimals, or g and a number of digits", text));
  }
  return digits;
}

std::string shown(double value, std::string_view form, const FormulaNames& names) {
  if (!std::isfinite(value)) raise("formula: the value is not finite");
  if (form.empty()) {
    if (value != std::round(value) || std::fabs(value) > kLargestWhole) {
      raise(fmt::format("formula: {} is not whole and needs a form", value));
    }
    return fmt::format("{:.0f}", value);
  }
  if (form.starts_with('(') && form.ends_with(')')) {
    const std::string text = shown(value, form.substr(1, form.size() - 2), names);
    return text.starts_with('-') ? fmt::format("({})", text) : text;
  }
  const bool is_significant =
      form.size() > 1 && form[0] == 'g' && std::isdigit(static_cast<unsigned char>(form[1])) != 0;
  if (is_significant) return fmt::format("{:.{}g}", value, digits_from(form.substr(1), names));
  std::string text = fmt::format("{:.{}f}", value, digits_from(form, names));
  // A value that rounds to zero has no sign.
  if (text.find_first_not_of("-0.") == std::string::npos && text.starts_with('-')) text.erase(0, 1);
  return text;
}

std::string filled(std::string_view inside, const FormulaNames& names) {
  const std::size_t bar = inside.rfind('|');
  const std::string_view form = bar == std::string_view::npos ? "" : trimmed(inside.substr(bar + 1));
  const FormulaValue value = Reader(trimmed(inside.substr(0, bar)), names).whole_formula();
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  return shown(std::get<double>(value), form, names);
}

}  // namespace

void FormulaNames::set(std::string_view name, FormulaValue value) {
  for (auto& [known, old] : values_) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  values_.emplace_back(name, std::move(value));
}

const FormulaValue* FormulaNames::find(std::string_view name) const {
  for (const auto& [known, value] : values_) {
    if (known == name) return &value;
  }
  return nullptr;
}

NamedScheme FormulaNames::scheme(std::string_view name) const {
  for (const auto& [known, scheme] : schemes_) {
    if (known == name) return scheme;
  }
  return named_scheme(name);
}

double evaluate_formula(std::string_view formula, const FormulaNames& names) {
  const FormulaValue value = Reader(trimmed(formula), names).whole_formula();
  if (const auto* const number = std::get_if<double>(&value)) return *number;
  raise(fmt::format("formula: '{}' is text, not a number", formula));
}

std::string fill_template(std::string_view text, const FormulaNames& names) {
  std::string result;
  while (true) {
    const std::size_t open = text.find("{{");
    result += text.substr(0, open);
    if (open == std::string_view::npos) return result;
    const std::size_t close = text.find("}}", open);
    if (close == std::string_view::npos) raise(fmt::format("formula: no end of '{}'", text.substr(open)));
    result += filled(text.substr(open + 2, close - open - 2), names);
    text.remove_prefix(close + 2);
  }
}

}  // namespace lessons

double evaluate_formula(std::string_view formula) { return lessons::evaluate_formula(formula, {}); }

std::string fill_template(std::string_view text) { return lessons::fill_template(text, {}); }

}  // namespace posenc
