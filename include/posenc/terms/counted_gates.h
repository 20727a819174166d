#pragma once

#include "posenc/tensor.h"
#include "posenc/terms/numbered.h"

namespace posenc {

/// Contextual positions: the position of key n is the sum of the gates of the keys from n to the last visible one (CoPE).
///   x(m, n) = softcap(scale · q_m·k_n) + mask
///   p(m, n) = min(Σ_{t ≥ n} σ(x(m, t)), rows − 1), over the keys that m sees
///   score(m, n) = x(m, n) + (1 − w) · q_m·E[⌊p⌋] + w · q_m·E[⌈p⌉],   w = p − ⌊p⌋
/// Only the order of the tokens matters; positions are ignored.
struct CountedGates {
  ConstTensorView table;  // E, [rows, features], shared by all heads, or [heads, rows, features]; the caller's
};
template <> struct NumberedTerm<5> { using Type = CountedGates; };

}  // namespace posenc
