// The one list of terms, a line for each: the terms that a bias can add. A line includes the public header of a term, or the one that
// POSENC_TERM makes of its name where it is defined; src/terms/all.h includes their modules in this way.
#ifndef POSENC_TERM
// clang-format off
// NOLINTNEXTLINE(bugprone-macro-parentheses): a path is not an expression
#define POSENC_TERM(name) POSENC_QUOTED(posenc/terms/name.h)
// clang-format on
#endif
#define POSENC_QUOTED(path) #path

#include POSENC_TERM(slopes)
#include POSENC_TERM(distance_table)
#include POSENC_TERM(distance_vectors)
#include POSENC_TERM(distance_ratios)
#include POSENC_TERM(gate_sums)
#include POSENC_TERM(counted_gates)

#undef POSENC_QUOTED
#undef POSENC_TERM
