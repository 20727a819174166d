#pragma once

#include "terms/term.h"

// clang-format off
// NOLINTNEXTLINE(bugprone-macro-parentheses): a path is not an expression
#define POSENC_TERM(name) POSENC_QUOTED(terms/name/name.h)
// clang-format on
#include "posenc/terms/list.h"  // IWYU pragma: export

namespace posenc::terms {

/// Calls visit(source, Term<Kind>{}) with the term of a bias.
template <class Visit> auto with_term(const Bias& bias, const Visit& visit) {
  return std::visit([&]<class Kind>(const Kind& source) { return visit(source, Term<Kind>{}); }, bias.source);
}

}  // namespace posenc::terms
