#include "posenc/scheme.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "forms/compiled_once-inl.h"
#include "posenc/error.h"

namespace posenc {
namespace {

template <std::size_t... I> std::vector<Scheme> all_schemes(std::index_sequence<I...>) {
  return {Scheme(std::in_place_index<I>)...};
}
std::vector<Scheme> all_schemes() { return all_schemes(std::make_index_sequence<std::variant_size_v<Scheme>>()); }

template <class S, class F> constexpr bool kBecomes =
    std::is_same_v<decltype(prepare(std::declval<const S&>(), PrepareOptions{})), F>;

// The displayed family is that of the form.
template <class S> constexpr bool kFamilyIsTrue = S::family == (kBecomes<S, Bias>       ? "bias"
                                                                : kBecomes<S, Rotation> ? "rotation"
                                                                : kBecomes<S, Addition> ? "addition"
                                                                                        : "nothing");
template <class... S> constexpr bool families_are_true(const std::variant<S...>*) {
  return (kFamilyIsTrue<S> && ...);
}
static_assert(families_are_true(static_cast<const Scheme*>(nullptr)), "a scheme's `family` is not that of its form");

template <class... S> constexpr bool all_are_schemes(const std::variant<S...>*) { return (SchemeType<S> && ...); }
static_assert(all_are_schemes(static_cast<const Scheme*>(nullptr)), "an entry of the list is no scheme (SchemeType)");

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter; }

// The edit distance of two names, ignoring case: a letter inserted, deleted or replaced, or two neighbours swapped.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool is_same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j - 1] + (is_same ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      const bool is_exchange =
          i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (is_exchange) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

template class Boxed<Scheme>;

Form prepare(const Scheme& scheme, const PrepareOptions& options) {
  if (!options.denominators.empty() && !takes_fractions(scheme)) {
    raise(fmt::format("{}: positions must be whole: this scheme takes no denominators", name_of(scheme)));
  }
  return std::visit([&](const auto& one) -> Form { return prepare(one, options); }, scheme);
}

bool is_exact_alone(const Scheme& scheme) noexcept {
  return std::visit(
      []<class S>(const S&) {
        return requires { S::is_exact_alone; };
      },
      scheme);
}

bool takes_fractions(const Scheme& scheme) noexcept {
  return std::visit(
      []<class S>(const S&) {
        return requires { S::takes_fractions; };
      },
      scheme);
}

std::string_view name_of(const Scheme& scheme) noexcept {
  return std::visit([](const auto& one) { return std::decay_t<decltype(one)>::name; }, scheme);
}

bool is_bias(const Scheme& scheme) noexcept {
  return std::visit([]<class S>(const S&) { return kBecomes<S, Bias>; }, scheme);
}

bool is_rotation(const Scheme& scheme) noexcept {
  return std::visit([]<class S>(const S&) { return kBecomes<S, Rotation>; }, scheme);
}

LengthNeed length_need_of(const Scheme& scheme) {
  const auto ask = [](const auto& one) {
    if constexpr (requires { one.needs_length(); }) return one.needs_length();
    return LengthNeed::kNone;
  };
  return std::visit(ask, scheme);
}

TrainedTable trained_table_of(const Scheme& scheme) {
  const auto ask = [](const auto& one) -> TrainedTable {
    if constexpr (requires { one.trained_table(); }) return one.trained_table();
    return {};
  };
  return std::visit(ask, scheme);
}

std::string axes_text(const TrainedTable& table) {
  std::vector<std::string_view> names;
  for (const TrainedTable::Axis& axis : table.axes) names.push_back(axis.name);
  return fmt::format("[{}]", fmt::join(names, ", "));
}

bool draw_trained(Scheme& scheme, FunctionRef<double()> next) {
  const auto draw = [&](auto& one) {
    if constexpr (requires { one.draw_trained(next); }) return one.draw_trained(next);
    return false;
  };
  return std::visit(draw, scheme);
}

std::vector<std::string_view> scheme_names() {
  std::vector<std::string_view> names;
  for (const Scheme& scheme : all_schemes()) names.push_back(name_of(scheme));
  return names;
}

Scheme scheme_named(std::string_view name) {
  for (Scheme& scheme : all_schemes()) {
    if (name_of(scheme) == name) return std::move(scheme);
  }
  raise(fmt::format("unknown scheme '{}' ({})", name, suggestion(name, scheme_names())));
}

std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& names) {
  std::string_view best;
  std::size_t best_edits = name.size() / 3 + 1;  // further away is a different word, not a typo
  for (const std::string_view candidate : names) {
    const bool begins = name.size() >= 3 && candidate.substr(0, name.size()) == name;
    const std::size_t edits = begins ? 0 : edits_between(name, candidate);
    if (edits < best_edits && edits < candidate.size()) {
      best = candidate;
      best_edits = edits;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& names) {
  const std::string_view near = nearest_name(name, names);
  return near.empty() ? fmt::format("choose from: {}", fmt::join(names, ", "))
                      : fmt::format("did you mean '{}'?", near);
}

}  // namespace posenc
