#pragma once

#include <variant>

namespace posenc {

/// The term with a number, which it says in its header. Numbers start at 0 and have no gaps.
template <int kNumber> struct NumberedTerm;

/// A variant of the terms in the order of their numbers, from kNumber on after the given ones.
template <int kNumber, class... Before> struct TermsFrom { using Type = std::variant<Before...>; };
template <int kNumber, class... Before>
requires requires { sizeof(NumberedTerm<kNumber>); }
struct TermsFrom<kNumber, Before...> : TermsFrom<kNumber + 1, Before..., typename NumberedTerm<kNumber>::Type> {};

}  // namespace posenc
