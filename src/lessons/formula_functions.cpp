#include "lessons/formula_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <variant>

#include "lessons/formula_names.h"
#include "lessons/quantities.h"
#include "posenc/error.h"
#include "posenc/formula.h"
#include "posenc/half.h"

namespace posenc {
namespace lessons {
namespace {

constexpr double kPaperBase = 10000.0;

// The arguments of one call. Accessors throw an Error that names the function if an argument is unsuitable.
class Arguments {
 public:
  Arguments(std::string_view name, const std::vector<FormulaValue>& values, const FormulaNames& names)
      : name_(name), values_(values), names_(names) {}

  std::size_t count() const { return values_.size(); }
  bool is_name(std::size_t i) const { return i < count() && std::holds_alternative<std::string>(values_[i]); }
  double number(std::size_t i) const {
    if (i >= count() || is_name(i)) raise(fmt::format("formula: {} needs a number as argument {}", name_, i + 1));
    return std::get<double>(values_[i]);
  }
  double number_or(std::size_t i, double otherwise) const { return i < count() ? number(i) : otherwise; }
  std::int64_t whole(std::size_t i) const {
    const double value = number(i);
    if (value != std::round(value) || std::fabs(value) > 1e15) {
      raise(fmt::format("formula: argument {} of {} must be whole but is {}", i + 1, name_, value));
    }
    return static_cast<std::int64_t>(value);
  }
  NamedScheme scheme(std::size_t i) const {
    if (!is_name(i)) raise(fmt::format("formula: {} needs a scheme's name as argument {}", name_, i + 1));
    return names_.scheme(std::get<std::string>(values_[i]));
  }
  template <class S> S scheme_of(std::size_t i) const {
    const NamedScheme named = scheme(i);
    if (const auto* found = std::get_if<S>(&named.scheme)) return *found;
    raise(fmt::format("formula: {} needs a scheme of kind {}", name_, S::name));
  }
  template <class F> F form(std::size_t i) const {
    const NamedScheme named = scheme(i);
    const Form prepared = prepare(named.scheme, {.length = named.length});
    if (const auto* found = std::get_if<F>(&prepared)) return *found;
    raise(fmt::format("formula: {} does not go with scheme {}", name_, name_of(named.scheme)));
  }
  void expect(std::size_t least, std::size_t most) const {
    if (count() >= least && count() <= most) return;
    raise(fmt::format("formula: {} takes {} to {} arguments, not {}", name_, least, most, count()));
  }

 private:
  std::string_view name_;
  const std::vector<FormulaValue>& values_;
  const FormulaNames& names_;
};

double positive(const Arguments& a, std::string_view name) {
  const double value = a.number(0);
  if (!(value > 0)) raise(fmt::format("formula: {} of {}", name, value));
  return value;
}

// frequency(dims, pair[, base]) or frequency('scheme', pair)
double frequency(const Arguments& a) {
  if (a.is_name(0)) return frequency_at(a.form<Rotation>(0), a.whole(1));
  return frequency_at(a.whole(0), a.whole(1), a.number_or(2, kPaperBase));
}

double slowdown(const Arguments& a) {
  Rope plain = a.scheme_of<Rope>(0);
  plain.scaling = NoScaling{};
  return frequency_at(prepare(plain), a.whole(1)) / frequency_at(a.form<Rotation>(0), a.whole(1));
}

double fade(const Arguments& a) {
  const std::vector<double> rates = pair_waves_of(a.form<Rotation>(0)).growth.rates;
  const std::int64_t pair = a.whole(1);
  if (pair < 0 || pair >= std::ssize(rates)) {
    raise("formula: fade needs a pair that grows");
  }
  return std::exp(rates[pair] * a.number(2));
}

double bucket(const Arguments& a) {
  const Scheme scheme = a.scheme(0).scheme;
  if (const auto* t5 = std::get_if<T5>(&scheme)) return static_cast<double>(entry_at(buckets_of(*t5), a.whole(1)));
  return static_cast<double>(entry_at(rows_of(a.scheme_of<Deberta>(0)), a.whole(1)));
}

double weight(const Arguments& a) {
  std::vector<double> scores;
  for (std::size_t i = 1; i < a.count(); ++i) scores.push_back(a.number(i));
  const std::int64_t which = a.whole(0);
  return softmax_weight(scores, which < 0 ? scores.size() : static_cast<std::size_t>(which));
}

double value(const Arguments& a) {
  const std::vector<double> row = row_at(a.form<Addition>(0), a.whole(1));
  const std::int64_t column = a.whole(2);
  if (column < 0 || column >= static_cast<std::int64_t>(row.size()))
    raise("formula: value needs a column of the row");
  return row[column];
}

Pair rotated_pair(const Arguments& a) {
  return turned({.dims = a.whole(0)}, a.whole(1), a.whole(2), {a.number(3), a.number(4)});
}

struct Entry {
  FormulaFunction described;
  std::size_t least, most;
  double (*call)(const Arguments&);
};

const Entry kEntries[] = {
    {{"sqrt", "x", "square root"}, 1, 1, [](const Arguments& a) { return std::sqrt(positive(a, "sqrt")); }},
    {{"ln", "x", "natural logarithm"}, 1, 1, [](const Arguments& a) { return std::log(positive(a, "ln")); }},
    {{"log2", "x", "logarithm to base 2"}, 1, 1, [](const Arguments& a) { return std::log2(positive(a, "log2")); }},
    {{"log10", "x", "logarithm to base 10"},
     1,
     1,
     [](const Arguments& a) { return std::log10(positive(a, "log10")); }},
    {{"exp", "x", "e to the power x"}, 1, 1, [](const Arguments& a) { return std::exp(a.number(0)); }},
    {{"sin", "x", "sine of x radians"}, 1, 1, [](const Arguments& a) { return sine_of(a.number(0)); }},
    {{"cos", "x", "cosine of x radians"}, 1, 1, [](const Arguments& a) { return cosine_of(a.number(0)); }},
    {{"floor", "x", "x rounded down"}, 1, 1, [](const Arguments& a) { return std::floor(a.number(0)); }},
    {{"mod", "x, y", "remainder of x / y"},
     2,
     2,
     [](const Arguments& a) { return std::fmod(a.number(0), a.number(1)); }},
    {{"min", "x, y", "the smaller one"}, 2, 2, [](const Arguments& a) { return std::min(a.number(0), a.number(1)); }},
    {{"max", "x, y", "the larger one"}, 2, 2, [](const Arguments& a) { return std::max(a.number(0), a.number(1)); }},
    {{"pow", "x, y", "x to the power y"},
     2,
     2,
     [](const Arguments& a) { return std::pow(a.number(0), a.number(1)); }},
    {{"pe", "width, position, column[, base]", "one value of the sinusoidal table"},
     3,
     4,
     [](const Arguments& a) {
       return sinusoid_at({.width = a.whole(0), .base = a.number_or(3, kPaperBase)}, a.whole(1), a.whole(2));
     }},
    {{"dot", "width, distance[, base]", "dot product of two sinusoidal rows this far apart"},
     2,
     3,
     [](const Arguments& a) {
       return dot_product_at({.width = a.whole(0), .base = a.number_or(2, kPaperBase)}, a.whole(1));
     }},
    {{"frequency", "dims, pair[, base] or 'scheme', pair", "radians per position of a pair"}, 2, 3, frequency},
    {{"wavelength", "dims, pair[, base] or 'scheme', pair", "wavelength of a pair in positions"},
     2,
     3,
     [](const Arguments& a) { return 2 * std::numbers::pi / frequency(a); }},
    {{"slowdown", "'scheme', pair", "how many times slower a scaling makes a pair"}, 2, 2, slowdown},
    {{"magnitude", "'scheme'", "factor on cosines and sines"},
     1,
     1,
     [](const Arguments& a) { return a.form<Rotation>(0).magnitude; }},
    {{"softmax_factor", "'scheme'", "factor on the softmax's scale"},
     1,
     1,
     [](const Arguments& a) { return a.form<Rotation>(0).softmax_factor; }},
    {{"fade", "'scheme', pair, distance", "factor of a pair's score at a distance, with xpos"}, 3, 3, fade},
    {{"rotate_a", "dims, pair, position, a, b", "first feature of a rotated pair"},
     5,
     5,
     [](const Arguments& a) { return rotated_pair(a).a; }},
    {{"rotate_b", "dims, pair, position, a, b", "second feature of a rotated pair"},
     5,
     5,
     [](const Arguments& a) { return rotated_pair(a).b; }},
    {{"value", "'scheme', position, column", "what an addition adds"}, 3, 3, value},
    {{"bias", "'scheme', head, query, key", "what a bias adds to a score"},
     4,
     4,
     [](const Arguments& a) { return bias_at(a.form<Bias>(0), a.whole(1), a.whole(2), a.whole(3)); }},
    {{"slope", "heads, head", "a slope of ALiBi"},
     2,
     2,
     [](const Arguments& a) { return -bias_at(prepare(Alibi{.heads = a.whole(0)}), a.whole(1), 1, 0); }},
    {{"bucket", "'scheme', distance", "row of key minus query, in T5 and DeBERTa"}, 2, 2, bucket},
    {{"weight", "which, score, score …", "softmax weight of one of the scores"}, 2, 16, weight},
    {{"reversal_gap", "'scheme', causal", "how much reversing three tokens is noticed; 0: not at all"},
     2,
     2,
     [](const Arguments& a) { return reversal_gap(a.scheme(0).scheme, a.number(1) != 0); }},
    {{"float32_error", "'scheme', position", "largest error of a row whose angles are float32"},
     2,
     2,
     [](const Arguments& a) { return float32_error(a.scheme(0).scheme, a.whole(1)); }},
    {{"as_bf16", "x", "rounded to bf16"},
     1,
     1,
     [](const Arguments& a) { return to_double(to_bfloat16(a.number(0))); }},
};

}  // namespace

double call_formula_function(std::string_view name, const std::vector<FormulaValue>& arguments,
                             const FormulaNames& names) {
  for (const Entry& entry : kEntries) {
    if (entry.described.name != name) continue;
    const Arguments given(name, arguments, names);
    given.expect(entry.least, entry.most);
    return entry.call(given);
  }
  raise(fmt::format("formula: there is no function '{}'", name));
}

}  // namespace lessons

std::span<const FormulaFunction> formula_functions() {
  static const std::vector<FormulaFunction> kList = [] {
    std::vector<FormulaFunction> list;
    for (const auto& entry : lessons::kEntries) list.push_back(entry.described);
    return list;
  }();
  return kList;
}

}  // namespace posenc
