// Formulas in the texts of content/: a small reader of expressions, and the numbers put where the braces stood.
#include "posenc/formula.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

#include "lessons/formula_functions.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using lessons::FormulaValue;

constexpr int kDeepest = 32;
constexpr double kLargestWhole = 9007199254740992.0;  // 2^53: from here on doubles skip whole numbers
constexpr int kMostDigits = 17;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  double whole_formula() {
    const double value = sum();
    skip_spaces();
    if (at_ != text_.size()) fail("end of the formula", at_);
    return value;
  }

 private:
  [[noreturn]] void fail(std::string_view wanted, std::size_t at) const {
    raise(fmt::format("formula: {} expected at '{}'", wanted, text_.substr(at)));
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char wanted) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  double sum() {
    double value = product();
    while (true) {
      if (take('+')) {
        value += product();
      } else if (take('-')) {
        value -= product();
      } else {
        return value;
      }
    }
  }

  double product() {
    double value = factor();
    while (true) {
      if (take('*')) {
        value *= factor();
      } else if (take('/')) {
        value /= factor();
      } else {
        return value;
      }
    }
  }

  double factor() {
    if (++depth_ > kDeepest) raise("formula: brackets too deep");
    const double value = unnested_factor();
    --depth_;
    return value;
  }

  double unnested_factor() {
    if (take('-')) return -factor();
    if (take('(')) {
      const double value = sum();
      if (!take(')')) fail("')'", at_);
      return value;
    }
    skip_spaces();
    if (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) return named();
    return number();
  }

  double number() {
    double value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(text_.data() + at_, end, value);
    if (error != std::errc()) fail("a number", at_);
    at_ = static_cast<std::size_t>(stop - text_.data());
    return value;
  }

  double named() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      ++at_;
    }
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (!take('(')) {
      if (name == "pi") return std::numbers::pi;
      fail("a function or pi", begin);
    }
    std::vector<FormulaValue> arguments;
    if (!take(')')) {
      do arguments.push_back(argument());
      while (take(','));
      if (!take(')')) fail("')'", at_);
    }
    return lessons::call_formula_function(name, arguments);
  }

  FormulaValue argument() {
    if (!take('\'')) return sum();
    const std::size_t begin = at_;
    at_ = text_.find('\'', begin);
    if (at_ == std::string_view::npos) {
      at_ = begin;
      fail("a closing quote", begin);
    }
    return std::string(text_.substr(begin, at_++ - begin));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

int digits_from(std::string_view text) {
  int digits = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), digits);
  if (error != std::errc() || stop != text.data() + text.size() || digits < 0 || digits > kMostDigits) {
    raise(fmt::format("formula: '{}' is no form: a number of decimals, or g and a number of digits", text));
  }
  return digits;
}

std::string shown(double value, std::string_view form) {
  if (!std::isfinite(value)) raise("formula: the value is not finite");
  if (form.empty()) {
    if (value != std::round(value) || std::fabs(value) > kLargestWhole) {
      raise(fmt::format("formula: {} is not whole and needs a form", value));
    }
    return fmt::format("{:.0f}", value);
  }
  if (form.starts_with('g')) return fmt::format("{:.{}g}", value, digits_from(form.substr(1)));
  std::string text = fmt::format("{:.{}f}", value, digits_from(form));
  // a value that rounds to zero has no sign
  if (text.find_first_not_of("-0.") == std::string::npos && text.starts_with('-')) text.erase(0, 1);
  return text;
}

std::string filled(std::string_view inside) {
  const std::size_t bar = inside.rfind('|');
  const std::string_view form = bar == std::string_view::npos ? "" : trimmed(inside.substr(bar + 1));
  return shown(evaluate_formula(inside.substr(0, bar)), form);
}

}  // namespace

double evaluate_formula(std::string_view formula) { return Reader(trimmed(formula)).whole_formula(); }

std::string fill_template(std::string_view text) {
  std::string result;
  while (true) {
    const std::size_t open = text.find("{{");
    result += text.substr(0, open);
    if (open == std::string_view::npos) return result;
    const std::size_t close = text.find("}}", open);
    if (close == std::string_view::npos) raise(fmt::format("formula: no end of '{}'", text.substr(open)));
    result += filled(text.substr(open + 2, close - open - 2));
    text.remove_prefix(close + 2);
  }
}

}  // namespace posenc
