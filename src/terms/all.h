#pragma once

// The modules of the kinds in the list of forms.h, one line for each.
#include "terms/counted_gates/counted_gates.h"        // IWYU pragma: export
#include "terms/distance_ratios/distance_ratios.h"    // IWYU pragma: export
#include "terms/distance_table/distance_table.h"      // IWYU pragma: export
#include "terms/distance_vectors/distance_vectors.h"  // IWYU pragma: export
#include "terms/gate_sums/gate_sums.h"                // IWYU pragma: export
#include "terms/slopes/slopes.h"                      // IWYU pragma: export
#include "terms/term.h"

namespace posenc::terms {

/// Calls visit(source, Term<Kind>{}) with the term of a bias.
template <class Visit> auto with_term(const Bias& bias, const Visit& visit) {
  return std::visit([&]<class Kind>(const Kind& source) { return visit(source, Term<Kind>{}); }, bias.source);
}

}  // namespace posenc::terms
